/** Content of a database over REST: statements, tables, dumps. */
import { pipeline } from 'node:stream/promises';
import { closeOf, receiveFile } from '../http/bodies/received-file.ts';
import { contentDisposition } from '../http/response.ts';
import { defineRoute, type Route, type RouteInput, TicketField } from '../http/route.ts';
import { Type } from '../platform/json/json-schema.ts';
import type { Dumps, NamedDump } from './dumps.ts';
import type { Queries } from './queries.ts';
import {
  DumpQuery,
  LOG_BYTES,
  LoadedDatabase,
  LoadForm,
  LoadQuery,
  LogQuery,
  NewQuery,
  QueryResponse,
  TableEntry,
  TestDatabaseEntry,
} from './query-schema.ts';
import { DatabasePath } from './schema.ts';

export interface DatabaseContentRoutesDeps {
  readonly queries: Queries;
  readonly dumps: Dumps;
}

const DATABASE = '/api/databases/{database_id}';
/** Errors of any engine. */
const ENGINE_FAILURES = ['data_damaged', 'data_missing', 'engine_unavailable', 'host_disk_full'] as const;

/** Enough for 100,000 characters, each escaped to six bytes in JSON, and as many for parameters. */
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
      livesOn: 'host',
      tag: 'databases',
      summary: 'Run a statement',
      description:
        'Read-only by default. Limits: 1,000 rows, 4 MiB, 10 seconds. The statement ends in the database when you ' +
        'cancel it by its `query_id`, or close the connection.',
      permission: 'databases:write',
      params: DatabasePath,
      body: NewQuery,
      maxBodyBytes: MAX_QUERY_BYTES,
      takesNul: true,
      changesNothing: ({ read_only: isReadOnly = true }) => isReadOnly,
      responses: { 200: QueryResponse },
      errors: [
        ...(['database_not_found', 'database_not_ready', 'query_failed', 'query_timeout'] as const),
        ...ENGINE_FAILURES,
        ...(['out_of_space', 'operation_cancelled'] as const),
      ],
      handler: ({ principal, params, body: input, reply }) =>
        queries.run(principal, params.database_id, { input, signal: closeOf(reply) }),
    }),
    defineRoute({
      method: 'GET',
      path: `${DATABASE}/tables`,
      name: 'listDatabaseTables',
      livesOn: 'host',
      tag: 'databases',
      summary: 'List tables, views or collections, with their columns and indexes',
      permission: 'databases:read',
      params: DatabasePath,
      responses: { 200: Type.Array(TableEntry) },
      errors: ['database_not_found', 'database_not_ready', ...ENGINE_FAILURES],
      handler: ({ principal, params, reply }) =>
        queries.tables(principal, params.database_id, closeOf(reply)),
    }),
    testDatabasesRoute(queries),
    logRoute(queries),
  ];
}

function testDatabasesRoute(queries: Queries): Route {
  return defineRoute({
    method: 'GET',
    path: `${DATABASE}/test-databases`,
    name: 'listTestDatabases',
    livesOn: 'host',
    tag: 'databases',
    summary: 'List further databases that your programs created on the server of a database',
    description:
      'Programs create them with `CREATE DATABASE`, for tests or as shadow databases, at most 50 on a server; for ' +
      'engines that have `has_test_databases`. All databases of an account with one engine share a server, so the list ' +
      'is the same for each. In the built-in MongoDB the first write creates a test database, and each database has ' +
      'at most 50 of its own.',
    permission: 'databases:read',
    params: DatabasePath,
    responses: { 200: Type.Array(TestDatabaseEntry) },
    errors: ['database_not_found', 'database_not_ready', ...ENGINE_FAILURES],
    handler: ({ principal, params }) => queries.testDatabases(principal, params.database_id),
  });
}

function logRoute(queries: Queries): Route {
  return defineRoute({
    method: 'GET',
    path: `${DATABASE}/log`,
    name: 'getDatabaseLog',
    livesOn: 'host',
    tag: 'databases',
    summary: 'Read the latest log lines of a database',
    description:
      'Errors, terminated sessions, refused logins and statements slower than one second, as far as the engine ' +
      'logs them; for engines with the trait `has_log`. Entries of other databases are never included.',
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
      audit: 'change',
      livesOn: 'host',
      tag: 'databases',
      summary: 'Download a dump of the database',
      description:
        'A consistent snapshot; the database stays available. Four dumps of an account can be downloaded at a ' +
        'time; another waits for a minute, then gets 503 `overloaded`.',
      permission: 'databases:write',
      params: DatabasePath,
      query: Type.Object({ ...DumpQuery.properties, ticket: TicketField }),
      acceptsTicket: true,
      produces: 'bytes',
      responses: { 200: Type.String({ format: 'binary' }) },
      errors: ['database_not_found', 'database_not_ready', 'overloaded', 'out_of_space', ...ENGINE_FAILURES],
      handler: (input) => send(dumps, input),
    }),
    defineRoute({
      method: 'POST',
      path: `${DATABASE}/load`,
      name: 'loadDatabase',
      livesOn: 'host',
      tag: 'databases',
      summary: 'Replace the database with a dump',
      description:
        'If the file cannot be loaded, the database is unchanged. Other changes of the database wait until ' +
        'the load has finished; deleting the database cancels the load. Statements that this server or account does ' +
        'not support, such as settings, owners and privileges, are left out and listed in `notes`. A dump of data ' +
        'alone (`pg_dump --data-only`, `mysqldump --no-create-info`, `.dump --data-only`) replaces nothing: its rows ' +
        'are added to the existing tables, and `added` is true.',
      permission: 'databases:write',
      params: DatabasePath,
      consumes: 'multipart',
      query: LoadQuery,
      body: LoadForm,
      responses: { 200: LoadedDatabase },
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
    // On failure the connection closes without the last chunk, so that no client takes the dump as complete.
    await pipeline(dump.stream, dump.counted, reply.raw).catch(() => reply.raw.destroy());
  };
  return dumps.dump(principal, params.database_id, { format, signal: closeOf(reply), send: sendDump });
}

function receive(dumps: Dumps, input: Input<{ strict?: boolean }>) {
  const { principal, params, query, reply } = input;
  const signal = closeOf(reply);
  return receiveFile(input, LoadForm, (dump) =>
    dumps.load(principal, params.database_id, { dump, isStrict: query.strict, signal }),
  );
}
