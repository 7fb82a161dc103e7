/** What is in a database, over REST: statements, tables, dumps. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { readForm } from '../http/multipart.ts';
import { contentDisposition } from '../http/response.ts';
import { defineRoute, type Route, type RouteInput } from '../http/route.ts';
import { unknownFields } from '../http/validate.ts';
import { invalidField } from '../platform/errors.ts';
import { Type } from '../platform/json-schema.ts';
import type { Dumps, NamedDump } from './dumps.ts';
import type { Queries } from './queries.ts';
import {
  DumpQuery,
  LOG_BYTES,
  LoadForm,
  LogQuery,
  NewQuery,
  QueryResponse,
  TableEntry,
} from './query-schema.ts';
import { Database, DatabasePath } from './schema.ts';

export interface DatabaseContentRoutesDeps {
  readonly queries: Queries;
  readonly dumps: Dumps;
}

const DATABASE = '/api/databases/{database_id}';
/** What any engine may answer instead of what was asked. */
const ENGINE_FAILURES = ['data_damaged', 'data_missing', 'engine_unavailable', 'host_disk_full'] as const;

/** A statement of 100,000 characters as JSON may write them, six bytes each, and as much for parameters. */
const MAX_QUERY_BYTES = 2 * 2 ** 20;

export function databaseContentRoutes(deps: DatabaseContentRoutesDeps): Route[] {
  return [...queryRoutes(deps), ...dumpRoutes(deps)];
}

function queryRoutes({ queries }: DatabaseContentRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: `${DATABASE}/query`,
      name: 'queryDatabase',
      tag: 'databases',
      summary: 'Run one statement',
      description: 'Read-only unless asked otherwise; at most 1,000 rows, 4 MiB and 10 seconds.',
      permission: 'databases:write',
      params: DatabasePath,
      body: NewQuery,
      maxBodyBytes: MAX_QUERY_BYTES,
      responses: { 200: QueryResponse },
      errors: [
        ...(['database_not_found', 'database_not_ready', 'query_failed', 'query_timeout'] as const),
        ...ENGINE_FAILURES,
        'out_of_space',
      ],
      handler: ({ principal, params, body: input, reply }) =>
        queries.run(principal, params.database_id, { input, signal: closeOf(reply) }),
    }),
    defineRoute({
      method: 'GET',
      path: `${DATABASE}/tables`,
      name: 'listDatabaseTables',
      tag: 'databases',
      summary: 'List tables, views or collections, with their columns and indexes',
      permission: 'databases:read',
      params: DatabasePath,
      responses: { 200: Type.Array(TableEntry) },
      errors: ['database_not_found', 'database_not_ready', ...ENGINE_FAILURES],
      handler: ({ principal, params, reply }) =>
        queries.tables(principal, params.database_id, closeOf(reply)),
    }),
    logRoute(queries),
  ];
}

function logRoute(queries: Queries): Route {
  return defineRoute({
    method: 'GET',
    path: `${DATABASE}/log`,
    name: 'getDatabaseLog',
    tag: 'databases',
    summary: 'Read the latest log lines of a database',
    description:
      'PostgreSQL: errors, sessions that were ended and refused logins; MySQL: the last two. Both: statements ' +
      'that took longer than a second. No statement of others is in it.',
    permission: 'databases:read',
    params: DatabasePath,
    query: LogQuery,
    responses: { 200: Type.String() },
    produces: 'text',
    errors: ['database_not_found', 'not_found'],
    handler: ({ principal, params, query }) =>
      queries.log(principal, params.database_id, query.bytes ?? LOG_BYTES),
  });
}

function dumpRoutes({ dumps }: DatabaseContentRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: `${DATABASE}/dump`,
      name: 'dumpDatabase',
      tag: 'databases',
      summary: 'Download the whole database',
      description: 'A consistent snapshot; the database stays in use meanwhile.',
      permission: 'databases:write',
      params: DatabasePath,
      query: DumpQuery,
      produces: 'bytes',
      responses: { 200: Type.String({ format: 'binary' }) },
      errors: ['database_not_found', 'database_not_ready', ...ENGINE_FAILURES],
      handler: (input) => send(dumps, input),
    }),
    defineRoute({
      method: 'POST',
      path: `${DATABASE}/load`,
      name: 'loadDatabase',
      tag: 'databases',
      summary: 'Replace the whole database by a dump',
      description:
        'A file that cannot be loaded leaves the database as it was. Other changes of the database wait for ' +
        'the end, except its deletion, which ends the load.',
      permission: 'databases:write',
      params: DatabasePath,
      consumes: 'multipart',
      body: LoadForm,
      responses: { 200: Database },
      errors: [
        ...(['database_not_found', 'database_not_ready', 'load_failed', 'invalid_multipart'] as const),
        ...ENGINE_FAILURES,
        ...(['out_of_space', 'payload_too_large'] as const),
      ],
      handler: (input) => receive(dumps, input),
    }),
  ];
}

type Input<Q = unknown> = RouteInput<{ database_id: string }, Q, unknown>;

/** Aborts when the caller goes away before the response. One who asked for it later may go. */
function closeOf({ raw }: Input['reply']): AbortSignal {
  const controller = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) controller.abort();
  });
  return controller.signal;
}

function send(dumps: Dumps, { principal, params, query, request, reply }: Input<{ format?: string }>) {
  const { format } = query;
  const sendDump = async (dump: NamedDump) => {
    const headers = request.responseHeaders;
    headers['content-type'] = dump.contentType;
    headers['content-disposition'] = contentDisposition('attachment', dump.fileName);
    headers['cache-control'] = 'no-store';
    if (dump.sizeBytes !== null) headers['content-length'] = String(dump.sizeBytes);
    reply.hijack();
    reply.raw.writeHead(200, headers);
    // Cut short, the response ends without its last chunk: no client takes it for whole.
    await pipeline(dump.stream, dump.counted, reply.raw).catch(() => reply.raw.destroy());
  };
  return dumps.dump(principal, params.database_id, { format, signal: closeOf(reply), send: sendDump });
}

/** The engine sees the end of the file only when the form was whole and the call is known. */
async function receive(dumps: Dumps, { principal, params, request, reply, identify }: Input) {
  const stream = new PassThrough();
  // Both sides hear of a failure by the promises below; the stream may have no reader yet.
  stream.on('error', () => {});
  const hash = createHash('sha256');
  const load = dumps.load(principal, params.database_id, { dump: stream, signal: closeOf(reply) });
  const form = readForm(request.raw, {
    write: (chunk) => {
      hash.update(chunk);
      // What comes after a refusal is let pass, so that the connection can be used again.
      if (stream.destroyed || stream.write(Buffer.from(chunk))) return undefined;
      return Promise.race([once(stream, 'drain'), load]).then(
        () => {},
        () => {},
      );
    },
  }).then(({ fields, file }) => {
    unknownFields(request, fields.keys(), LoadForm);
    if (file === undefined) throw invalidField('file', 'is required');
    identify(hash.digest('hex'));
    stream.end();
  });
  form.catch((error: Error) => stream.destroy(error));
  // Whoever refuses first is heard; a load that has failed takes no more of the form.
  load.catch((error: Error) => stream.destroy(error));
  try {
    await Promise.race([form, load]);
  } catch (error) {
    // A retry, which only all of the form tells, has its response, also when the database went since.
    if (request.headers['idempotency-key'] !== undefined) await form;
    throw error;
  }
  return load;
}
