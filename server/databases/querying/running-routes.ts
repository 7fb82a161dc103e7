/** Running statements over REST: list and cancel. */
import { defineRoute, type Route } from '../../http/route.ts';
import { formatTime } from '../../platform/clock.ts';
import { namedObject, Type } from '../../platform/json/json-schema.ts';
import type { Queries } from '../queries.ts';
import { DatabasePath } from '../schema.ts';
import type { RunningQuery as Running } from './running-queries.ts';

const QUERIES = '/api/databases/{database_id}/queries';

const RunningQuery = namedObject('RunningDatabaseQuery', {
  query_id: Type.String({ description: 'The id given with the query, or an id chosen by the cloud' }),
  statement: Type.String({
    description: 'The first 200 characters of the statement, or of the command as JSON',
  }),
  read_only: Type.Boolean(),
  started_at: Type.String({ description: 'When the query was received, UTC' }),
});

const QueryPath = Type.Object({ ...DatabasePath.properties, query_id: Type.String() });

export function runningRoutes({ queries }: { readonly queries: Queries }): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: QUERIES,
      name: 'listRunningDatabaseQueries',
      livesOn: 'host',
      tag: 'databases',
      summary: 'List the queries over the API that are running in a database',
      description: 'Statements of database drivers are not included.',
      permission: 'databases:write',
      params: DatabasePath,
      responses: { 200: Type.Array(RunningQuery) },
      errors: ['database_not_found'],
      handler: async ({ principal, params }) =>
        (await queries.running(principal, params.database_id)).map(present),
    }),
    defineRoute({
      method: 'POST',
      path: `${QUERIES}/{query_id}/cancel`,
      name: 'cancelDatabaseQuery',
      livesOn: 'host',
      tag: 'databases',
      summary: 'Cancel a running query',
      description:
        'Cancels the statement in the database itself; its caller gets `operation_cancelled`. Changes of an ' +
        'unfinished statement are rolled back. A query also ends when its caller closes the connection.',
      permission: 'databases:write',
      params: QueryPath,
      responses: { 200: RunningQuery },
      errors: ['database_not_found', 'not_found'],
      handler: async ({ principal, params }) =>
        present(await queries.cancel(principal, params.database_id, params.query_id)),
    }),
  ];
}

function present({ queryId, statement, readOnly, startedAt }: Running) {
  return { query_id: queryId, statement, read_only: readOnly, started_at: formatTime(startedAt) };
}
