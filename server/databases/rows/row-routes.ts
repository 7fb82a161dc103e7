/** Rows of a table over REST. */

import { pipeline } from 'node:stream/promises';
import { contentDisposition } from '../../http/response.ts';
import { defineRoute, type Route, TicketField } from '../../http/route.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { closeOf } from '../content-routes.ts';
import { DatabasePath } from '../schema.ts';
import type { RowExports } from './row-exports.ts';
import {
  ChangedRows,
  type ExportFormat,
  RowChangesBody,
  RowsExportQuery,
  Rows as RowsPage,
  RowsQuery,
} from './row-schema.ts';
import type { Rows } from './rows.ts';

const ROWS = '/api/databases/{database_id}/rows';
const ERRORS = [
  ...(['database_not_found', 'database_not_ready', 'query_failed', 'query_timeout'] as const),
  ...(['data_damaged', 'data_missing', 'engine_unavailable', 'host_disk_full', 'out_of_space'] as const),
  'operation_cancelled',
] as const;
const MAX_BODY_BYTES = 4 * 2 ** 20;

export interface RowRoutesDeps {
  readonly rows: Rows;
  readonly rowExports: RowExports;
}

export function rowRoutes({ rows, rowExports }: RowRoutesDeps): Route[] {
  return [
    exportRoute(rowExports),
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

function exportRoute(rowExports: RowExports): Route {
  return defineRoute({
    method: 'GET',
    path: `${ROWS}/export`,
    name: 'exportDatabaseRows',
    audit: 'change',
    livesOn: 'host',
    tag: 'databases',
    summary: 'Download all rows of a table as CSV, JSON lines or SQL',
    description:
      'In the order of the key, which the table needs. Not a snapshot: rows that change meanwhile may be in it or ' +
      'not; a dump is one. If it fails midway, the connection closes before the end of the response.',
    permission: 'databases:write',
    params: DatabasePath,
    query: Type.Object({ ...RowsExportQuery.properties, ticket: TicketField }),
    acceptsTicket: true,
    produces: 'bytes',
    responses: { 200: Type.String({ format: 'binary' }) },
    errors: ERRORS,
    handler: async ({ principal, params, query, request, reply }) => {
      const { table, schema, format = 'csv' } = query;
      const wanted = { table, schema, format: format as ExportFormat, signal: closeOf(reply) };
      const { bytes, contentType, fileName } = await rowExports.start(principal, params.database_id, wanted);
      const headers = request.responseHeaders;
      headers['content-type'] = contentType;
      headers['content-disposition'] = contentDisposition('attachment', fileName);
      headers['cache-control'] = 'no-store';
      reply.hijack();
      reply.raw.writeHead(200, headers);
      // A client must not take what was cut off as complete.
      await pipeline(bytes, reply.raw).catch(() => reply.raw.destroy());
    },
  });
}
