/** Tunnels to database servers. Users log in as over any other connection. */
import { credentialOf, type Principal } from '../calls/principal.ts';
import { upgradeRequired } from '../http/connections/upgrades.ts';
import type { SocketRoute } from '../http/connections/web-sockets.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Changes } from '../metadata/change.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { Type } from '../platform/json/json-schema.ts';
import { type Announce, eventOf } from '../resources/row-change.ts';
import type { Tunnels, TunnelTarget } from '../resources/tunnels.ts';
import type { EngineDescription } from './engine-description.ts';
import type { Engines } from './engines.ts';
import type { Egress } from './life/egress.ts';
import type { DatabaseEventType, Lifecycle } from './life/lifecycle.ts';
import type { OwnedDatabases } from './life/owned-databases.ts';
import { assertReadable, isOpen } from './life/states.ts';
import { DatabasePath } from './schema.ts';
import type { DatabaseRow, DatabaseStore } from './store.ts';

export interface DatabaseTunnelsDeps {
  readonly owned: Pick<OwnedDatabases, 'findLive'>;
  readonly store: Pick<DatabaseStore, 'find'>;
  readonly engines: Engines;
  readonly lifecycle: Pick<Lifecycle, 'inEngine'>;
  readonly egress: Pick<Egress, 'count'>;
  readonly changes: Changes;
  readonly announce: Announce<DatabaseEventType>;
  readonly clock: Clock;
  readonly tunnels: Tunnels;
}

const PATH = '/api/databases/{database_id}/tunnel';

export function databaseTunnelRoute({ databases }: DatabaseTunnelRouteDeps): Route {
  return defineRoute({
    method: 'GET',
    path: PATH,
    name: 'openDatabaseTunnel',
    livesOn: 'host',
    tag: 'databases',
    summary: 'Open a tunnel to the server of a database as a WebSocket',
    description:
      'Carries the bytes of one connection of a driver, like openVmTunnel; the user and password of the ' +
      'database are still needed. For engines with the transport `tcp`; others answer over HTTP, and ' +
      "an operator's server is reached directly. `cloudlet db forward` implements this protocol.",
    permission: 'databases:connect',
    params: DatabasePath,
    responses: { 101: Type.Unknown({ description: 'A WebSocket' }) },
    errors: [
      ...(['database_not_found', 'database_not_ready', 'engine_unavailable', 'overloaded'] as const),
      ...(['insufficient_capacity', 'invalid_ticket', 'cross_site_request', 'bad_http'] as const),
      ...(['no_tunnel', 'upgrade_required'] as const),
    ],
    handler: async ({ principal, params }) => {
      await databases.describe(principal, params.database_id);
      throw upgradeRequired(
        'A tunnel requires a WebSocket upgrade request',
        'Use cloudlet db forward, or a WebSocket client',
      );
    },
  });
}

export interface DatabaseTunnelRouteDeps {
  readonly databases: { describe(principal: Principal, databaseId: string): Promise<unknown> };
}

/** The tunnel's path as a WebSocket. */
export function databaseTunnelSocket(deps: DatabaseTunnelsDeps): SocketRoute {
  return {
    path: PATH,
    name: 'openDatabaseTunnel',
    opens: true,
    permission: 'databases:connect',
    livesOn: 'host',
    mayHoldUp: true,
    prepare: async (principal, params) => {
      const row = await deps.owned.findLive(principal, params.database_id ?? '');
      assertReadable(row);
      return deps.tunnels.open(targetOf(deps, row), { credential_id: credentialOf(principal) });
    },
  };
}

function targetOf(deps: DatabaseTunnelsDeps, row: DatabaseRow): TunnelTarget {
  const { store, engines, lifecycle, egress, changes, announce, clock } = deps;
  const { database_id: id, account_id: accountId, engine: name } = row;
  let isUncounted = false;
  return {
    id,
    accountId,
    dial: async () => {
      const engine = engines.get(name);
      const opened = await engine.connect?.(lifecycle.inEngine(row));
      if (opened === undefined) throw noTunnel(engines.about(name));
      ({ isUncounted } = opened);
      return opened.stream;
    },
    isOpen: async () => {
      const now = await store.find(id);
      return now !== undefined && isOpen(now);
    },
    sent: (bytes) => {
      if (isUncounted) egress.count(id, bytes);
    },
    announce: async (what, facts) => {
      const at = { at: clock.now(), database_id: id, engine: name };
      await changes.store(announce(eventOf(`database.${what}`, row, { ...at, ...facts })));
    },
  };
}

function noTunnel({ name, title, traits }: EngineDescription): AppError {
  const isHttp = traits.transport === 'http';
  const detail = isHttp
    ? `A ${title} database has no server: connect to it over HTTP`
    : `The ${name} server of this cloud belongs to its operator and has no tunnels`;
  const hint = isHttp
    ? 'Use POST /api/databases/{database_id}/query, cloudlet db connect, or the address of its connection'
    : 'Connect to the address of its connection';
  return new AppError('no_tunnel', detail, { hint });
}
