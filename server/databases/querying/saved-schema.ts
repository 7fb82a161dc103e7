/** Public schemas of saved queries. */
import { namedObject, type Static, Type } from '../../platform/json/json-schema.ts';

const MAX_NAME = 200;
const MAX_TEXT = 100_000;
const Fields = {
  name: Type.String({ minLength: 1, maxLength: MAX_NAME, description: 'Unique in the database' }),
  text: Type.String({ minLength: 1, maxLength: MAX_TEXT, description: 'Statements, or a command as JSON' }),
};

export const NewSavedQuery = namedObject('NewSavedQuery', Fields);
export type NewSavedQuery = Static<typeof NewSavedQuery>;

export const SavedQuery = namedObject('SavedQuery', {
  saved_query_id: Type.String(),
  ...Fields,
  updated_at: Type.String({ description: 'UTC' }),
});
export type SavedQuery = Static<typeof SavedQuery>;
