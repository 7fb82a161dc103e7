/** The texts of the diagram of tables, loaded with it. */
import { schema } from './en/databases/schema.ts';

export const schemaText = schema;
