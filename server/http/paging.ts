/** How a caller asks for a list by pages. */
import { Type } from '../platform/json-schema.ts';

/** Most entries of a page. */
const MAX_LIMIT = 1000;

/** Members of a list's query. */
export const Paging = {
  limit: Type.Optional(
    Type.Integer({
      $id: 'Limit',
      minimum: 1,
      maximum: MAX_LIMIT,
      description: 'Turns on paging; the `Link` header names the next page',
    }),
  ),
  cursor: Type.Optional(
    Type.String({ $id: 'Cursor', maxLength: 8192, description: 'From the `Link` header of the page before' }),
  ),
};
