/** Makes the edges: every route of the two origins, the API, the data origin, WebSockets. */
import { type AdminRoutesDeps, adminRoutes } from '../accounts/admin-routes.ts';
import { type AccountRoutesDeps, accountRoutes } from '../accounts/routes.ts';
import {
  type BillingAdminRoutesDeps,
  billingAdminRoutes,
  type PlanRoutesDeps,
  planRoutes,
} from '../billing/admin-routes.ts';
import { type BillingRoutesDeps, billingRoutes } from '../billing/routes.ts';
import { type ConsoleRoutesDeps, consoleRoutes } from '../compute/console/console-routes.ts';
import { type ImageRoutesDeps, imageRoutes } from '../compute/images/image-routes.ts';
import { vmAdminRoutes } from '../compute/machines/vm-admin-routes.ts';
import { type VmRoutesDeps, vmRoutes } from '../compute/machines/vm-routes.ts';
import { type MetricsRoutesDeps, metricsRoutes } from '../compute/metrics/metrics-routes.ts';
import type { Config } from '../config/config.ts';
import { type DatabaseRoutesDeps, databaseRoutes } from '../databases/routes.ts';
import { HranaEdge, type HranaEdgeDeps } from '../hrana/hrana-edge.ts';
import { BodyRoom } from '../http/body.ts';
import { CallerLimits, RateLimiter } from '../http/caller.ts';
import { ConnectionGuard } from '../http/connection-guard.ts';
import type { ConsoleFiles } from '../http/console-files.ts';
import { createEdge, type EdgeDeps } from '../http/edge.ts';
import { documentRoutes, type IndexRoutesDeps, indexRoutes } from '../http/index-routes.ts';
import { type OperationRoutesDeps, operationRoutes, updateRoutes } from '../http/operation-routes.ts';
import { hostsOf, type OwnAddresses } from '../http/origins.ts';
import { UnreadResponses } from '../http/response.ts';
import type { Route } from '../http/route.ts';
import { type SocketRoute, WebSockets, type WebSocketsDeps } from '../http/web-sockets.ts';
import { type RecoveryRoutesDeps, recoveryRoutes } from '../recovery/routes.ts';
import { type SystemRoutesDeps, systemRoutes } from '../status/routes.ts';
import { type BucketRoutesDeps, bucketRoutes } from '../storage/bucket-routes.ts';
import { type ContentRoutesDeps, contentRoutes } from '../storage/content-routes.ts';
import { type ObjectRoutesDeps, objectRoutes } from '../storage/object-routes.ts';
import { uploadRoutes } from '../storage/upload-routes.ts';
import { type WebhookRoutesDeps, webhookRoutes } from '../webhooks/routes.ts';

export interface ApiDeps {
  readonly accounts: AccountRoutesDeps;
  readonly administration: AdminRoutesDeps;
  readonly storage: BucketRoutesDeps & ObjectRoutesDeps & ContentRoutesDeps;
  readonly compute: VmRoutesDeps & ImageRoutesDeps & MetricsRoutesDeps & ConsoleRoutesDeps;
  readonly databases: DatabaseRoutesDeps;
  readonly recovery: RecoveryRoutesDeps;
  readonly billing: BillingRoutesDeps & BillingAdminRoutesDeps & PlanRoutesDeps;
  readonly webhooks: WebhookRoutesDeps;
  readonly system: SystemRoutesDeps;
  readonly operations: OperationRoutesDeps;
  readonly index: IndexRoutesDeps;
}

/** The API origin. */
export function apiRoutes(deps: ApiDeps): Route[] {
  const routes = [
    ...accountRoutes(deps.accounts),
    ...bucketRoutes(deps.storage),
    ...uploadRoutes(deps.storage),
    ...objectRoutes(deps.storage),
    ...contentRoutes(deps.storage),
    ...vmRoutes(deps.compute),
    ...vmAdminRoutes(deps.compute),
    ...imageRoutes(deps.compute),
    ...metricsRoutes(deps.compute),
    ...consoleRoutes(deps.compute),
    ...databaseRoutes(deps.databases),
    ...recoveryRoutes(deps.recovery),
    ...billingRoutes(deps.billing),
    ...webhookRoutes(deps.webhooks),
    ...operationRoutes(deps.operations),
    ...updateRoutes(),
    ...systemRoutes(deps.system),
    ...adminRoutes(deps.administration),
    ...planRoutes(deps.billing),
    ...billingAdminRoutes(deps.billing),
    ...indexRoutes(deps.index),
  ];
  return [...routes, ...documentRoutes(routes)];
}

/** The API's routes as declared, without anything behind them: enough to document them. */
export function declaredRoutes(): Route[] {
  const nothing = {} as never;
  return apiRoutes({
    accounts: nothing,
    administration: nothing,
    storage: nothing,
    compute: nothing,
    databases: nothing,
    recovery: nothing,
    billing: nothing,
    webhooks: nothing,
    system: nothing,
    operations: nothing,
    index: nothing,
  });
}

type CommonEdgeDeps = Pick<EdgeDeps, 'clock' | 'log' | 'meters' | 'idempotency' | 'operations' | 'control'> &
  Pick<WebSocketsDeps, 'accounts'>;

const API_METHODS = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'];
const LINK_METHODS = ['GET', 'HEAD'];
const DATABASE_METHODS = ['GET', 'POST'];
/** Of everybody together, on both origins. */
const REQUEST_BODIES_BYTES = 256 * 2 ** 20;

/** The two origins, each with its limits and headers, and the guard over both's connections. */
export function buildEdges(
  config: Config,
  deps: CommonEdgeDeps & {
    apiRoutes: EdgeDeps['routes'];
    dataRoutes: EdgeDeps['routes'];
    sockets: readonly SocketRoute[];
    hrana: HranaEdgeDeps['databases'];
    pages: ConsoleFiles;
    addresses: OwnAddresses;
    /** How many connections the process has files for. */
    connections: number;
  },
) {
  const { clock, log, addresses } = deps;
  const hsts = config.publicUrl.startsWith('https:') ? HSTS : {};
  const trustedProxies = config.trustedProxies.split(',').filter((address) => address !== '');
  const limitOf = (name: string, requests: number, windowSeconds: number) =>
    new RateLimiter({ name, requests, windowSeconds }, clock);
  const limiter = new CallerLimits(
    limitOf('requests', config.requestsPerWindow, 10),
    limitOf('account', config.requestsPerWindow * config.accountRateFactor, 10),
  );
  const corsOrigins = config.corsOrigins.split(',').filter((origin) => origin !== '');
  const registrations = limitOf('registrations', config.registrationsPerWindow, 600);
  const hostNames = [config.host, ...hostsOf(config.publicUrl, config.dataUrl)];
  const share = Math.min(1, deps.connections / config.maxConnections);
  const maxConnections = Math.floor(config.maxConnections * share);
  if (share < 1)
    log.warn({ maxConnections }, 'fewer connections than set: too few files may be open (ulimit -n)');
  const guard = new ConnectionGuard({
    clock,
    log,
    maxConnections,
    maxPerAddress: Math.ceil(config.maxConnectionsPerAddress * share),
    trustedProxies,
    slowSeconds: config.slowBodySeconds,
  });
  const isReserve = guard.isReserve.bind(guard);
  const bodies = new BodyRoom(REQUEST_BODIES_BYTES);
  const unread = new UnreadResponses(config.unreadResponsesMb * 2 ** 20);
  const { publicUrl } = config;
  const common = { ...deps, publicUrl, trustedProxies, hostNames, isReserve, bodies };
  const api = createEdge({
    ...common,
    limiter,
    unread,
    routeLimiters: new Map([['register', registrations]]),
    routes: deps.apiRoutes,
    pages: deps.pages,
    own: { addresses, origin: 'apiUrl' },
    headers: { ...API_HEADERS, ...hsts },
    cors: corsOrigins.length === 0 ? null : { origins: corsOrigins, methodsAt: () => API_METHODS },
  });
  const headers = { ...API_HEADERS, ...hsts };
  new WebSockets({ ...common, limiter, routes: deps.sockets, headers }).serve(api);
  const data = createEdge({
    ...common,
    limiter: null,
    routeLimiters: new Map(),
    routes: deps.dataRoutes,
    own: { addresses, origin: 'dataUrl' },
    headers: { ...DATA_HEADERS, ...hsts },
    // Whoever has a link may read what it leads to; whoever has a password, use the database.
    cors: { origins: ['*'], methodsAt: (url) => (url.startsWith('/db/') ? DATABASE_METHODS : LINK_METHODS) },
  });
  new HranaEdge({
    log,
    databases: deps.hrana,
    bodies,
    unread,
    maxCalls: config.databaseCalls,
    maxBodyBytes: config.databaseCallMb * 2 ** 20,
  }).serve(data);
  guard.watch(api.server);
  guard.watch(data.server);
  return { api, data, guard };
}

/** For the JSON API: nothing may be loaded, framed, sniffed or cached. */
const API_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

/**
 * For users' files on the data origin: whatever they are, they run as nobody's script. `sandbox` gives
 * an opened HTML or SVG file an opaque origin without scripts; pages of other origins may embed images.
 */
const DATA_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; media-src 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'cross-origin',
};

/** Sent besides when users reach us by https. */
const HSTS = { 'strict-transport-security': 'max-age=31536000' } as const;
