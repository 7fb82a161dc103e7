/** Builds the edges: every route of the two origins, the API, the data origin, WebSockets. */
import { accountIdOf } from '../accounts/account-id.ts';
import { accountsRoutes } from '../accounts/part.ts';
import { auditRoutes } from '../audit/routes.ts';
import { billingRoutes } from '../billing/part.ts';
import { computeRoutes } from '../compute/part.ts';
import type { Config } from '../config/config.ts';
import { listIn } from '../config/host-names.ts';
import { databaseRoutes } from '../databases/routes.ts';
import type { HranaEdgeDeps } from '../hrana/hrana-edge.ts';
import { serveHrana } from '../hrana/part.ts';
import { serveUpgrades } from '../http/connections/upgrades.ts';
import { type SocketRoute, WebSockets, type WebSocketsDeps } from '../http/connections/web-sockets.ts';
import { type DoorsDeps, openDoors } from '../http/doors.ts';
import { createEdge, type EdgeDeps, isAwsSigned, type StaticFiles } from '../http/edge.ts';
import { DataForward, forwardedData } from '../http/forwarding/data-forward.ts';
import { NamedMachines, type NamedMachinesDeps } from '../http/named-machines.ts';
import { apiCors, DATA_CORS } from '../http/origin-rules.ts';
import type { OwnAddresses } from '../http/origins.ts';
import type { Route } from '../http/route.ts';
import { type DocumentDeps, documentRoutes, indexRoutes } from '../http/routes/index-routes.ts';
import { type OperationRoutesDeps, operationRoutes, updateRoutes } from '../http/routes/operation-routes.ts';
import { type RightsRoutesDeps, rightsRoutes } from '../http/routes/rights-routes.ts';
import { mailRoutes } from '../mail/routes.ts';
import { nodeRoutes } from '../nodes/routes.ts';
import { recoveryRoutes } from '../recovery/routes.ts';
import { type S3Sources, s3Edge } from '../s3/part.ts';
import { ID_HEADERS, OFFERED as s3Operations } from '../s3/s3-edge.ts';
import { s3Routes } from '../s3/s3-routes.ts';
import { systemRoutes } from '../status/routes.ts';
import { storageRoutes } from '../storage/part.ts';
import { webhookRoutes } from '../webhooks/routes.ts';

/** Every domain's operations, in the order of the document. */
const DOMAINS = [
  accountsRoutes,
  auditRoutes,
  storageRoutes,
  s3Routes,
  computeRoutes,
  databaseRoutes,
  recoveryRoutes,
  webhookRoutes,
  mailRoutes,
  billingRoutes,
  callsRoutes,
  systemRoutes,
  nodeRoutes,
  indexRoutes,
];

/** The API's routes without dependencies, for the documentation only. */
export function declaredRoutes(): Route[] {
  return withDocuments(DOMAINS.flatMap((routes) => routes({} as never)));
}

/** All routes, those that show permissions, and those that document them all. */
export function withDocuments(
  routes: readonly Route[],
  deps: DocumentDeps & Pick<RightsRoutesDeps, 'holders'> = { apiUrl: () => '/', ...UNKNOWN },
): Route[] {
  const asked = { ...deps, accountIdOf, s3Operations, allRoutes: () => all };
  const all: Route[] = [...routes, ...rightsRoutes(asked)];
  all.push(...documentRoutes(all, deps));
  return all;
}

/** For the documentation only. */
const UNKNOWN = { library: undefined, holders: {} as RightsRoutesDeps['holders'] };

/** Operations that respond before their end, and the stream of updates. */
export function callsRoutes(deps: OperationRoutesDeps): Route[] {
  return [...operationRoutes(deps), ...updateRoutes()];
}

type CommonEdgeDeps = Pick<EdgeDeps, 'idempotency' | 'operations' | 'control' | 'audit' | 'passwords'> &
  Pick<DoorsDeps, 'clock' | 'log' | 'meters' | 'connections' | 'forwarding'> &
  Pick<WebSocketsDeps, 'accounts'> &
  Required<Pick<EdgeDeps, 'tickets'>>;

/** The two origins, each with its limits and headers, and the guard over both's connections. */
export function buildEdges(
  config: Config,
  deps: CommonEdgeDeps & {
    apiRoutes: EdgeDeps['routes'];
    dataRoutes: EdgeDeps['routes'];
    sockets: readonly SocketRoute[];
    hrana: HranaEdgeDeps['databases'];
    pages: StaticFiles;
    addresses: OwnAddresses;
    s3: S3Sources;
    named: NamedMachinesDeps['find'];
  },
) {
  const { addresses, forwarding, log } = deps;
  const doors = openDoors(config, { ...deps, s3IdHeaders: ID_HEADERS });
  const { guard, bodies, proxies, forward } = doors;
  const trustedProxies = listIn(config.trustedProxies);
  const common = { ...deps, publicUrl: config.publicUrl, trustedProxies, bodies, forward };
  const ofData = forwardedData(forwarding.forwarded && doors.api, () => data.server, forwarding.ports);
  const s3 = s3Edge(config, { ...deps, ...deps.s3, door: doors.s3, bodies, proxies });
  const api = createEdge({
    ...common,
    door: doors.api,
    limitsCalls: true,
    routeLimiters: doors.routeLimiters,
    routes: deps.apiRoutes,
    pages: deps.pages,
    // For clients that reach only this port. Links stay on the data origin: they may open scripts.
    beside: [...ofData.beside, { takes: isAwsSigned, handle: s3.handle.bind(s3) }],
    own: { addresses, origin: 'apiUrl' },
    cors: apiCors(config),
  });
  new WebSockets({ ...common, door: doors.api, routes: deps.sockets }).serve(api, ofData.upgrades);
  const { appsDomain: domain } = config;
  const named = new NamedMachines({ domain, find: deps.named, proxies, door: doors.named });
  const toHost = forward === undefined ? [] : [new DataForward({ forward, named, doors })];
  const data: ReturnType<typeof createEdge> = createEdge({
    ...common,
    door: doors.data,
    limitsCalls: false,
    routeLimiters: new Map(),
    routes: deps.dataRoutes,
    own: { addresses, origin: 'dataUrl' },
    beside: [...toHost, ...(domain === '' ? [s3] : [named, s3])],
    cors: DATA_CORS,
  });
  const sockets = serveHrana(data, config, { log, databases: deps.hrana, bodies, door: doors.data });
  serveUpgrades(data.server, [...toHost, named, sockets]);
  for (const door of [doors.s3, doors.named]) door.watch(data.server);
  guard.watch(api.server);
  guard.watch(data.server);
  const close = () => {
    guard.close();
    forwarding.close();
  };
  return { api, data, guard, forward, close };
}
