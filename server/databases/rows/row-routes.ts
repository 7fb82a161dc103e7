/** Rows of a table over REST. */

import { defineRoute, type Route } from '../../http/route.ts';
import { closeOf } from '../content-routes.ts';
import { DatabasePath } from '../schema.ts';
import { ChangedRows, RowChangesBody, Rows as RowsPage, RowsQuery } from './row-schema.ts';
import type { Rows } from './rows.ts';

const ROWS = '/api/databases/{database_id}/rows';
const ERRORS = [
  ...(['database_not_found', 'database_not_ready', 'query_failed', 'query_timeout'] as const),
  ...(['data_damaged', 'data_missing', 'engine_unavailable', 'host_disk_full', 'out_of_space'] as const),
  'operation_cancelled',
] as const;
const MAX_BODY_BYTES = 4 * 2 ** 20;

export function rowRoutes({ rows }: { readonly rows: Rows }): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: `${ROWS}/read`,
      name: 'readDatabaseRows',
      livesOn: 'host',
      tag: 'databases',
      summary: 'Read rows of a table by pages, filtered and sorted',
      description: 'Reads only. The statement that was run is part of the response.',
      permission: 'databases:write',
      params: DatabasePath,
      body: RowsQuery,
      takesNul: true,
      changesNothing: () => true,
      responses: { 200: RowsPage },
      errors: ERRORS,
      handler: ({ principal, params, body: input, reply }) =>
        rows.read(principal, params.database_id, { input, signal: closeOf(reply) }),
    }),
    defineRoute({
      method: 'POST',
      path: `${ROWS}/change`,
      name: 'changeDatabaseRows',
      livesOn: 'host',
      tag: 'databases',
      summary: 'Insert, update and delete rows of a table, all or none',
      description:
        'One transaction. An update or delete has the row as it was read: if it differs by now, nothing is ' +
        'changed and the response is `write_conflict`. With `dry_run` the statements are only shown.',
      permission: 'databases:write',
      params: DatabasePath,
      body: RowChangesBody,
      maxBodyBytes: MAX_BODY_BYTES,
      takesNul: true,
      changesNothing: ({ dry_run: isDry = false }) => isDry,
      responses: { 200: ChangedRows },
      errors: [...ERRORS, 'write_conflict'],
      handler: ({ principal, params, body: input, reply }) =>
        rows.change(principal, params.database_id, { input, signal: closeOf(reply) }),
    }),
  ];
}
