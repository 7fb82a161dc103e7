/** Rows of a table over REST. */

import { closeOf } from '../../http/bodies/received-file.ts';
import { contentDisposition } from '../../http/response.ts';
import { defineRoute, type Route, type RouteInput, TicketField } from '../../http/route.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { DatabasePath } from '../schema.ts';
import type { RowExport, RowExports } from './row-exports.ts';
import {
  ChangedRows,
  type ExportFormat,
  RowChangesBody,
  RowsExportQuery,
  Rows as RowsPage,
  RowsQuery,
} from './row-schema.ts';
import type { Rows } from './rows.ts';
import { taken } from './taken.ts';

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
      summary: 'Read rows of a table, or documents, by pages, filtered and sorted',
      description: 'Read-only. The response includes the statement that was run.',
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
      summary: 'Insert, update and delete rows of a table, or documents, all or none',
      description:
        'One transaction. An update or delete includes the row as it was read: if the row has changed, nothing is ' +
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
      'The rows are one snapshot, in the order of the key if the table has one; reading may take an hour. Documents are Extended ' +
      'JSON lines, or CSV with a column for each field. If it fails midway, the ' +
      'connection closes before the end of the response.',
    permission: 'databases:write',
    params: DatabasePath,
    query: Type.Object({ ...RowsExportQuery.properties, ticket: TicketField }),
    acceptsTicket: true,
    produces: 'bytes',
    responses: { 200: Type.String({ format: 'binary' }) },
    errors: ERRORS,
    handler: (input) => send(rowExports, input),
  });
}

type ExportInput = RouteInput<{ database_id: string }, RowsExportQuery, unknown>;

/** A client must not take a truncated file as complete: the connection closes without the last chunk. */
async function send(rowExports: RowExports, { principal, params, query, request, reply }: ExportInput) {
  const { table, schema, format = 'csv' } = query;
  const { raw } = reply;
  let isOpen = false;
  const open = ({ contentType, fileName }: RowExport) => {
    isOpen = true;
    const headers = request.responseHeaders;
    headers['content-type'] = contentType;
    headers['content-disposition'] = contentDisposition('attachment', fileName);
    headers['cache-control'] = 'no-store';
    reply.hijack();
    raw.writeHead(200, headers);
    return (bytes: Uint8Array) => taken(raw, bytes);
  };
  const wanted = { table, schema, format: format as ExportFormat, signal: closeOf(reply), open };
  try {
    await rowExports.send(principal, params.database_id, wanted);
    raw.end();
  } catch (error) {
    if (!isOpen) throw error;
    raw.destroy();
  }
}
