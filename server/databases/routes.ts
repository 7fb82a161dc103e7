/** Databases over REST. */
import type { Principal } from '../calls/principal.ts';
import { listPage, rowIdCursor } from '../http/list-page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { MetricsQuery } from '../metadata/sample-history.ts';
import { Type } from '../platform/json/json-schema.ts';
import { type DatabaseContentRoutesDeps, databaseContentRoutes } from './content-routes.ts';
import type { Creation } from './creation/creation.ts';
import type { DatabaseDeleter } from './creation/database-deleter.ts';
import type { Databases } from './databases.ts';
import { DEFAULT_ENGINE, type EngineLimits } from './engine.ts';
import type { EngineDescription } from './engine-description.ts';
import type { Engines } from './engines.ts';
import { importRoutes } from './imports/import-routes.ts';
import type { Imports } from './imports/imports.ts';
import { DatabaseMetrics, type Metrics } from './life/metrics.ts';
import type { DatabasePoints } from './points/database-points.ts';
import { planRoutes } from './querying/plan-routes.ts';
import type { Plans } from './querying/plans.ts';
import { runningRoutes } from './querying/running-routes.ts';
import type { SavedQueries } from './querying/saved-queries.ts';
import { savedRoutes } from './querying/saved-routes.ts';
import type { RowExports } from './rows/row-exports.ts';
import { rowRoutes } from './rows/row-routes.ts';
import type { Rows } from './rows/rows.ts';
import {
  Credentials,
  CredentialsQuery,
  Database,
  DatabaseChange,
  DatabaseMoments,
  DatabasePath,
  DatabasePoint,
  DatabasesQuery,
  DeletionQuery,
  EngineEntry,
  NewDatabase,
  Undeletion,
} from './schema.ts';
import { databaseTunnelRoute } from './tunnel-routes.ts';

export interface DatabaseRoutesDeps extends DatabaseContentRoutesDeps, DatabaseMetricsRoutesDeps {
  readonly databases: Databases;
  readonly creation: Creation;
  readonly deleter: DatabaseDeleter;
  readonly points: DatabasePoints;
  readonly rows: Rows;
  readonly rowExports: RowExports;
  readonly imports: Imports;
  readonly plans: Plans;
  readonly savedQueries: SavedQueries;
  readonly engines: Engines;
  readonly limits: EngineLimits;
  /** Connections of the server of an account. */
  readonly serverConnections: number;
  readonly maxSizeMb: number;
}

const DATABASE = '/api/databases/{database_id}';

export function databaseRoutes(deps: DatabaseRoutesDeps): Route[] {
  return [
    ...engineRoutes(deps),
    ...findRoutes(deps),
    ...pointsRoutes(deps),
    ...changeRoutes(deps),
    ...removalRoutes(deps),
    ...databaseContentRoutes(deps),
    ...planRoutes(deps),
    ...runningRoutes(deps),
    ...savedRoutes(deps),
    ...rowRoutes(deps),
    ...importRoutes(deps),
    ...databaseMetricsRoutes(deps),
    databaseTunnelRoute(deps),
  ];
}

function presentAbout({ title, summary, traits, client }: EngineDescription) {
  return {
    title,
    summary,
    traits: {
      language: traits.language,
      dialect: traits.dialect,
      transport: traits.transport,
      has_log: traits.hasLog,
      offers_tls: traits.offersTls,
      has_test_databases: traits.hasTestDatabases,
      has_account_server: traits.hasAccountServer,
    },
    client: client && { programs: [...client.programs], package: client.package },
  };
}

function engineRoutes({ engines, limits, serverConnections, maxSizeMb }: DatabaseRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/database-engines',
      name: 'listDatabaseEngines',
      livesOn: 'host-or-any',
      tag: 'databases',
      summary: 'List the database engines, with the reason if an engine is unavailable',
      permission: 'public',
      responses: { 200: Type.Array(EngineEntry) },
      handler: async () =>
        (await engines.readiness()).map((entry) => ({
          ...entry,
          ...presentAbout(engines.about(entry.engine)),
          preparing: entry.preparing ?? null,
          default: entry.engine === DEFAULT_ENGINE,
          extensions: [...(entry.extensions ?? [])],
          limits: {
            size_mb: maxSizeMb,
            connections: limits.connections,
            server_connections:
              entry.source === 'managed' && engines.about(entry.engine).traits.hasAccountServer
                ? serverConnections
                : null,
            statement_seconds: Math.ceil(limits.statementMs / 1000),
          },
        })),
    }),
  ];
}

function findRoutes({ databases, creation }: DatabaseRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/databases',
      name: 'createDatabase',
      audit: { kind: 'secret', detail: ['name', 'engine'] },
      oldSession: 'new',
      livesOn: 'host',
      tag: 'databases',
      summary: 'Create a database',
      description:
        'Responds when the database accepts connections; the response includes the password. If the server is slow to ' +
        'start, the database stays `creating` and becomes ready later. Copying (`from`) takes time that ' +
        'depends on the size and continues if you disconnect: request it with `Prefer: respond-async`.',
      permission: 'databases:write',
      body: NewDatabase,
      responses: { 201: Database },
      errors: [
        ...(['database_exists', 'insufficient_credits', 'quota_exceeded', 'engine_unavailable'] as const),
        ...([
          'insufficient_capacity',
          'host_disk_full',
          'out_of_space',
          'write_conflict',
          'data_damaged',
        ] as const),
        ...(['database_not_found', 'database_not_ready'] as const),
        ...([
          'point_not_found',
          'data_corrupted',
          'target_unavailable',
          'load_failed',
          'overloaded',
        ] as const),
      ],
      handler: (call) => creation.create(call, call.body),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/databases',
      name: 'listDatabases',
      livesOn: 'host-or-any',
      tag: 'databases',
      summary: 'List your databases, oldest first',
      permission: 'databases:read',
      query: DatabasesQuery,
      responses: { 200: Type.Array(Database) },
      errors: ['invalid_cursor'],
      produces: 'list',
      handler: ({ principal, query, request }) => {
        const { limit, cursor, deleted = false } = query;
        const page = { after: rowIdCursor(cursor), limit: limit === undefined ? Infinity : limit + 1 };
        const entries = databases.list(principal, deleted, page);
        return listPage({ request, limit, entries, cursorOf: ({ id }) => String(id) });
      },
    }),
    defineRoute({
      method: 'GET',
      path: DATABASE,
      name: 'getDatabase',
      livesOn: 'host-or-any',
      tag: 'databases',
      summary: 'Read a database',
      permission: 'databases:read',
      params: DatabasePath,
      responses: { 200: Database },
      errors: ['database_not_found'],
      handler: ({ principal, params }) => databases.describe(principal, params.database_id),
    }),
  ];
}

function pointsRoutes({ points }: DatabaseRoutesDeps): Route[] {
  const description =
    'Create a database from one with `POST /api/databases` and `from`. Works for a deleted database as ' +
    'long as it can be undeleted.';
  const common = { method: 'GET', tag: 'databases', description, permission: 'databases:read' } as const;
  return [
    defineRoute({
      ...common,
      path: `${DATABASE}/points`,
      name: 'listDatabasePoints',
      livesOn: 'host',
      summary: 'List the recovery points that contain a database, newest first',
      params: DatabasePath,
      responses: { 200: Type.Array(DatabasePoint) },
      errors: ['database_not_found'],
      handler: ({ principal, params }) => points.list(principal, params.database_id),
    }),
    defineRoute({
      ...common,
      path: `${DATABASE}/moments`,
      name: 'listDatabaseMoments',
      livesOn: 'host',
      summary: 'List the times that a database can be restored to',
      params: DatabasePath,
      responses: { 200: DatabaseMoments },
      errors: ['database_not_found', 'target_unavailable', 'target_in_use'],
      handler: ({ principal, params }) => points.moments(principal, params.database_id),
    }),
  ];
}

function changeRoutes({ databases }: DatabaseRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'PATCH',
      path: DATABASE,
      name: 'changeDatabase',
      livesOn: 'host',
      tag: 'databases',
      summary: 'Change the name, the size limit or the deletion protection of a database',
      permission: 'databases:write',
      params: DatabasePath,
      body: DatabaseChange,
      responses: { 200: Database },
      errors: ['database_not_found', 'database_exists', 'write_conflict'],
      handler: (call) => databases.change(call, call.params.database_id, call.body),
    }),
    defineRoute({
      method: 'GET',
      path: `${DATABASE}/credentials`,
      name: 'getDatabaseCredentials',
      audit: { kind: 'secret', hasEntry: showsPassword },
      oldSession: 'hidden',
      livesOn: 'host',
      tag: 'databases',
      summary: 'Read the credentials of a database',
      permission: 'databases:write',
      description:
        'Engines with the trait `offers_tls` offer TLS even if it is not required: with `tls=true` the ' +
        'URI and the code require it, and verify the server by `ca`. A session whose password was given over 15 ' +
        'minutes ago gets `***` instead of the password, and no member `password`.',
      params: DatabasePath,
      query: CredentialsQuery,
      responses: { 200: Credentials },
      errors: ['database_not_found', 'database_not_ready'],
      handler: ({ principal, params, query, isSecretHidden }) =>
        databases.credentials(principal, params.database_id, {
          isVerified: query.tls === true,
          isHidden: isSecretHidden,
        }),
    }),
    defineRoute({
      method: 'POST',
      path: `${DATABASE}/credentials/rotate`,
      name: 'rotateDatabaseCredentials',
      audit: 'secret',
      livesOn: 'host',
      tag: 'databases',
      summary: 'Rotate the password of a database',
      description: 'Invalidates the old password and immediately ends the sessions that use it.',
      permission: 'databases:write',
      params: DatabasePath,
      responses: { 200: Credentials },
      errors: ['database_not_found', 'database_not_ready', 'write_conflict', 'engine_unavailable'],
      handler: (call) => databases.rotate(call, call.params.database_id),
    }),
    defineRoute({
      method: 'POST',
      path: `${DATABASE}/restart`,
      name: 'restartDatabase',
      livesOn: 'host',
      tag: 'databases',
      summary: 'Restart the server of a database',
      description:
        'Each account has its own server for its databases of an engine with the trait ' +
        '`has_account_server`; with other engines each database has its own server. All sessions on the server end, and open transactions ' +
        'are rolled back.',
      permission: 'databases:write',
      params: DatabasePath,
      responses: { 200: Database },
      errors: ['database_not_found', 'database_not_ready', 'write_conflict', 'engine_unavailable'],
      handler: (call) => databases.restart(call, call.params.database_id),
    }),
  ];
}

function removalRoutes({ deleter }: DatabaseRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'DELETE',
      path: DATABASE,
      name: 'deleteDatabase',
      livesOn: 'host',
      tag: 'databases',
      summary: 'Delete a database',
      description:
        'Ends the sessions, loads and copies of the database immediately. A last dump is kept ' +
        'until `deletes_at`, by default for 72 hours; until then the database can be undeleted. If the disk has ' +
        'no space for the dump, the request is refused; `keep=false` deletes immediately and permanently, ' +
        'including a database that was already deleted and is still kept.',
      permission: 'databases:write',
      params: DatabasePath,
      query: DeletionQuery,
      responses: { 200: Database },
      errors: ['database_not_found', 'delete_protected', 'write_conflict', 'out_of_space'],
      handler: (call) => deleter.remove(call, call.params.database_id, call.query),
    }),
    defineRoute({
      method: 'POST',
      path: `${DATABASE}/undelete`,
      name: 'undeleteDatabase',
      livesOn: 'host',
      tag: 'databases',
      summary: 'Undelete a database',
      description: 'Restores the content and the password.',
      permission: 'databases:write',
      params: DatabasePath,
      body: Undeletion,
      responses: { 200: Database },
      errors: [
        ...(['database_not_found', 'database_exists', 'insufficient_credits', 'quota_exceeded'] as const),
        ...(['engine_unavailable', 'host_disk_full', 'out_of_space', 'write_conflict'] as const),
      ],
      handler: (call) => deleter.undelete(call, call.params.database_id, call.body),
    }),
  ];
}

function showsPassword(_: Principal, answer: unknown): boolean {
  return (answer as Credentials).connection.password !== undefined;
}

interface DatabaseMetricsRoutesDeps {
  readonly metrics: Metrics;
}

function databaseMetricsRoutes({ metrics }: DatabaseMetricsRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/databases/{database_id}/metrics',
      name: 'getDatabaseMetrics',
      livesOn: 'host-or-any',
      tag: 'databases',
      summary: 'Read the metrics of a database',
      description:
        'Sampled from the engine every 5 seconds while in use; null if the engine does not report the metric. ' +
        'With from, to or step, includes the history: one hour in steps of 5 seconds, 30 days in steps of 300.',
      permission: 'databases:read',
      params: DatabasePath,
      query: MetricsQuery,
      responses: { 200: DatabaseMetrics },
      errors: ['database_not_found'],
      handler: ({ principal, params, query }) => metrics.read(principal, params.database_id, query),
    }),
  ];
}
