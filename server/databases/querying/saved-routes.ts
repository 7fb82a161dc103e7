/** Saved queries over REST. */
import { defineRoute, type Route } from '../../http/route.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { DatabasePath } from '../schema.ts';
import type { SavedQueries } from './saved-queries.ts';
import { NewSavedQuery, SavedQuery } from './saved-schema.ts';

/** Each character may be escaped to six bytes. */
const MAX_BODY_BYTES = 2 ** 20;
const SAVED = '/api/databases/{database_id}/saved-queries';

export function savedRoutes({ savedQueries }: { readonly savedQueries: SavedQueries }): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: SAVED,
      name: 'listSavedQueries',
      tag: 'databases',
      summary: 'List the saved queries of a database by name',
      permission: 'databases:read',
      params: DatabasePath,
      responses: { 200: Type.Array(SavedQuery) },
      errors: ['database_not_found'],
      handler: ({ principal, params }) => savedQueries.list(principal, params.database_id),
    }),
    defineRoute({
      method: 'POST',
      path: SAVED,
      name: 'saveQuery',
      audit: { detail: ['name'] },
      tag: 'databases',
      summary: 'Save a query under a name, replacing an earlier one of that name',
      description: 'Saves the text and runs nothing. At most 200 in a database; they are deleted with it.',
      permission: 'databases:write',
      params: DatabasePath,
      body: NewSavedQuery,
      maxBodyBytes: MAX_BODY_BYTES,
      responses: { 200: SavedQuery },
      errors: ['database_not_found', 'quota_exceeded', 'not_found'],
      handler: (call) => savedQueries.save(call, call.params.database_id, call.body),
    }),
    defineRoute({
      method: 'DELETE',
      path: `${SAVED}/{saved_query_id}`,
      name: 'deleteSavedQuery',
      tag: 'databases',
      summary: 'Delete a saved query',
      permission: 'databases:write',
      params: Type.Object({ ...DatabasePath.properties, saved_query_id: Type.String() }),
      responses: { 200: SavedQuery },
      errors: ['database_not_found', 'not_found'],
      handler: (call) => savedQueries.remove(call, call.params.database_id, call.params.saved_query_id),
    }),
  ];
}
