/** Makes the edges: every route of the two origins, the API, the data origin, WebSockets. */
import { accountsRoutes } from '../accounts/part.ts';
import { auditRoutes } from '../audit/routes.ts';
import { billingRoutes } from '../billing/part.ts';
import { computeRoutes } from '../compute/part.ts';
import type { Config } from '../config/config.ts';
import { isPublishedAt } from '../config/published-address.ts';
import { registrationsOf } from '../config/registrations.ts';
import { databaseRoutes } from '../databases/routes.ts';
import { HranaEdge, type HranaEdgeDeps } from '../hrana/hrana-edge.ts';
import { HranaSockets } from '../hrana/hrana-sockets.ts';
import { BodyMemory } from '../http/bodies/body-memory.ts';
import { ConnectionGuard } from '../http/connections/connection-guard.ts';
import { serveUpgrades } from '../http/connections/upgrades.ts';
import { type SocketRoute, WebSockets, type WebSocketsDeps } from '../http/connections/web-sockets.ts';
import { createEdge, type EdgeDeps, isAwsSigned, type StaticFiles } from '../http/edge.ts';
import { Door, type DoorDeps, TrustedProxies, UnreadResponses } from '../http/exchange.ts';
import { DataForward, forwardedData } from '../http/forwarding/data-forward.ts';
import { type DocumentDeps, documentRoutes, indexRoutes } from '../http/index-routes.ts';
import { NamedMachines, type NamedMachinesDeps } from '../http/named-machines.ts';
import { type OperationRoutesDeps, operationRoutes, updateRoutes } from '../http/operation-routes.ts';
import { hostsOf, type OwnAddresses } from '../http/origins.ts';
import { CallerLimits, RateLimiter } from '../http/rate-limits.ts';
import type { Route } from '../http/route.ts';
import { nodeRoutes } from '../nodes/routes.ts';
import { recoveryRoutes } from '../recovery/routes.ts';
import { ID_HEADERS, S3Edge, type S3EdgeDeps } from '../s3/s3-edge.ts';
import { s3Routes } from '../s3/s3-routes.ts';
import { systemRoutes } from '../status/routes.ts';
import { storageRoutes } from '../storage/part.ts';
import { webhookRoutes } from '../webhooks/routes.ts';
import type { Forwarding } from './forwarding.ts';

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

/** All of these routes, and those that document them. */
export function withDocuments(
  routes: readonly Route[],
  deps: DocumentDeps = { apiUrl: () => '/', library: undefined },
): Route[] {
  return [...routes, ...documentRoutes(routes, deps)];
}

/** Operations that are answered before their end, and the stream of updates. */
export function callsRoutes(deps: OperationRoutesDeps): Route[] {
  return [...operationRoutes(deps), ...updateRoutes()];
}

type CommonEdgeDeps = Pick<EdgeDeps, 'idempotency' | 'operations' | 'control' | 'audit'> &
  Pick<DoorDeps, 'clock' | 'log' | 'meters'> &
  Pick<WebSocketsDeps, 'accounts'> &
  Required<Pick<EdgeDeps, 'tickets'>>;

const API_METHODS = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'];
const LINK_METHODS = ['GET', 'HEAD'];
const DATABASE_METHODS = ['GET', 'POST'];
/** Memory budget of request bodies, in total, on both origins. */
const REQUEST_BODIES_BYTES = 256 * 2 ** 20;

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
    s3: Pick<S3EdgeDeps, 'storage' | 'keys' | 'accounts'>;
    named: NamedMachinesDeps['find'];
    /** Connections for which the process has file descriptors. */
    connections: number;
    forwarding: Forwarding;
  },
) {
  const { clock, addresses } = deps;
  const trustedProxies = proxiesOf(config);
  const limitOf: LimitOf = (name, requests, windowSeconds) =>
    new RateLimiter({ name, requests, windowSeconds }, clock);
  const { limiter, routeLimiters } = apiLimits(config, limitOf);
  const corsOrigins = config.corsOrigins.split(',').filter((origin) => origin !== '');
  const guard = connectionGuard(config, deps, deps.forwarding);
  const bodies = new BodyMemory(REQUEST_BODIES_BYTES, clock);
  const { forwarded } = deps.forwarding;
  const proxies = new TrustedProxies(trustedProxies, forwarded);
  // Each takes two descriptors here.
  const most = Math.ceil(Math.min(config.maxConnections, deps.connections) / 2);
  const forward = deps.forwarding.begin({ proxies, control: deps.control, most });
  const doors = openDoors(config, {
    ...deps,
    proxies,
    hostNames: [config.host, ...hostsOf(config.publicUrl, config.dataUrl), ...PRIVATE_NAMES],
    isReserve: guard.isReserve.bind(guard),
    limiter,
    s3Limiter: s3Limits(config, limitOf),
    unread: new UnreadResponses(config.unreadResponsesMb * 2 ** 20),
  });
  const common = { ...deps, publicUrl: config.publicUrl, trustedProxies, bodies, forward };
  const ofData = forwardedData(forwarded && doors.api, () => data.server);
  const s3 = s3Edge(config, { ...deps, door: doors.s3, bodies, proxies });
  const api = createEdge({
    ...common,
    door: doors.api,
    limitsCalls: true,
    routeLimiters,
    routes: deps.apiRoutes,
    pages: deps.pages,
    // For clients that reach this port alone. Links stay on the data origin: what they show may be script.
    beside: [...ofData.beside, { takes: isAwsSigned, handle: s3.handle.bind(s3) }],
    own: { addresses, origin: 'apiUrl' },
    cors: corsOrigins.length === 0 ? null : { origins: corsOrigins, methodsAt: () => API_METHODS },
  });
  new WebSockets({ ...common, door: doors.api, routes: deps.sockets }).serve(api, ofData.upgrades);
  const named = new NamedMachines({
    domain: config.appsDomain,
    find: deps.named,
    proxies,
    door: doors.named,
  });
  const toHost = forward === undefined ? [] : [new DataForward({ forward, named, doors })];
  const data: ReturnType<typeof createEdge> = createEdge({
    ...common,
    door: doors.data,
    limitsCalls: false,
    routeLimiters: new Map(),
    routes: deps.dataRoutes,
    own: { addresses, origin: 'dataUrl' },
    beside: [...toHost, ...(config.appsDomain === '' ? [s3] : [named, s3])],
    // A link or a database password grants access from any origin.
    cors: { origins: ['*'], methodsAt: (url) => (url.startsWith('/db/') ? DATABASE_METHODS : LINK_METHODS) },
  });
  const hrana = {
    log: deps.log,
    databases: deps.hrana,
    bodies,
    door: doors.data,
    maxCalls: config.databaseCalls,
    maxBodyBytes: config.databaseCallMb * 2 ** 20,
  };
  new HranaEdge(hrana).serve(data);
  const sockets = new HranaSockets(hrana);
  data.addHook('preClose', async () => sockets.close());
  serveUpgrades(data.server, [...toHost, named, sockets]);
  for (const door of [doors.s3, doors.named]) door.watch(data.server);
  guard.watch(api.server);
  guard.watch(data.server);
  const close = () => {
    guard.close();
    deps.forwarding.close();
  };
  return { api, data, guard, close };
}

function connectionGuard(
  config: Config,
  { clock, log, connections }: Pick<DoorDeps, 'clock' | 'log'> & { readonly connections: number },
  { forwarded }: Pick<Forwarding, 'forwarded'>,
): ConnectionGuard {
  const share = Math.min(1, connections / config.maxConnections);
  const maxConnections = Math.floor(config.maxConnections * share);
  if (share < 1)
    log.warn({ maxConnections }, 'connection limit lowered: the open file limit is too low (ulimit -n)');
  return new ConnectionGuard({
    clock,
    log,
    maxConnections,
    maxPerAddress: Math.ceil(config.maxConnectionsPerAddress * share),
    trustedProxies: proxiesOf(config),
    isNode: (address) => forwarded?.isNode(address) === true,
    slowSeconds: config.slowBodySeconds,
    pauseSeconds: config.pausedResponseSeconds,
    maxWaitingBytes: config.unreadResponsesMb * 2 ** 20,
  });
}

/** A door for each protocol; those of the two origins serve their WebSockets too. */
function openDoors(
  config: Config,
  { s3Limiter, ...frame }: Omit<DoorDeps, 'headers'> & { readonly s3Limiter: CallerLimits },
) {
  const dataUrl = config.dataUrl || config.publicUrl;
  const headers = { ...DATA_HEADERS, ...hstsAt(config, dataUrl) };
  return {
    api: new Door({ ...frame, headers: { ...API_HEADERS, ...hstsAt(config, config.publicUrl) } }),
    data: new Door({ ...frame, headers }),
    s3: new Door({
      ...frame,
      headers,
      idHeaders: ID_HEADERS,
      hostNames: [...frame.hostNames, ...s3HostNames(config)],
      limiter: s3Limiter,
      protocol: 's3',
    }),
    // Errors of the machines' web servers are no concern of the operator's.
    named: new Door({
      ...frame,
      headers: {},
      hostNames: [`.${config.appsDomain}`],
      protocol: 'machine',
      levelOf: () => 'debug',
    }),
  };
}

type LimitOf = (name: string, requests: number, windowSeconds: number) => RateLimiter;

function apiLimits(config: Config, limitOf: LimitOf) {
  const { requestsPerWindow, accountRateFactor } = config;
  const resets = limitOf('password resets', PASSWORD_RESETS, 600);
  const joins = limitOf('uses of invitations', INVITATIONS, 600);
  const deviceLogins = limitOf('device log-ins', DEVICE_LOGINS, 600);
  return {
    limiter: new CallerLimits(
      limitOf('requests', requestsPerWindow, 10),
      limitOf('account', requestsPerWindow * accountRateFactor, 10),
    ),
    routeLimiters: new Map([
      ['register', limitOf('registrations', registrationsOf(config), 600)],
      ['resetPassword', resets],
      ['showInvitation', joins],
      ['join', joins],
      ['startDeviceLogin', deviceLogins],
      ['findDeviceLogin', deviceLogins],
      ['decideDeviceLogin', deviceLogins],
    ]),
  };
}

type S3Deps = Pick<S3EdgeDeps, 'door' | 'clock' | 'bodies' | 'proxies' | 'audit'> & {
  readonly s3: Pick<S3EdgeDeps, 'storage' | 'keys' | 'accounts'>;
};

function s3Limits(config: Config, limitOf: LimitOf): CallerLimits {
  const { s3RequestsPerWindow: requests, accountRateFactor } = config;
  const perAccount = limitOf('s3-account', requests * accountRateFactor, 10);
  return new CallerLimits(limitOf('s3', requests, 10), perAccount);
}

function s3Edge(config: Config, { s3, ...deps }: S3Deps): S3Edge {
  return new S3Edge({
    ...deps,
    ...s3,
    domains: [...s3Domains(config), PRIVATE_S3],
    oldSignatures: config.s3OldSignatures === 'on',
    isPrivate: (request) => config.s3InsecureKeys === 'true' || deps.proxies.isPrivate(request),
  });
}

function proxiesOf({ trustedProxies }: Config): string[] {
  return trustedProxies.split(',').filter((address) => address !== '');
}

/** Names of the S3 endpoint and of databases that answer over HTTP, in private networks of accounts. */
const PRIVATE_S3 = 's3.internal';
const PRIVATE_NAMES = [PRIVATE_S3, `.${PRIVATE_S3}`, '.db.internal'];

/** Host names under which a bucket's name is the first label. */
export function s3Domains({ s3Domain }: Pick<Config, 's3Domain'>): string[] {
  return s3Domain.split(',').filter((domain) => domain !== '');
}

function s3HostNames(config: Config): string[] {
  return s3Domains(config).flatMap((domain) => [domain, `.${domain}`]);
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
 * Users' files on the data origin never run as script. `sandbox` gives an opened HTML or SVG file an opaque
 * origin without scripts; pages of other origins may embed images.
 */
const DATA_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; media-src 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'cross-origin',
};

/** Calls of one address in 10 minutes: asking for codes, and typing them. */
const DEVICE_LOGINS = 60;
/** The same of reset links that are tried. */
const PASSWORD_RESETS = 60;
/** Likewise, of invitations: a class behind one address looks at its links and joins, each some times. */
const INVITATIONS = 300;

const YEAR_SECONDS = 31_536_000;

/**
 * Strict-Transport-Security if users reach us over HTTPS. It counts for every port of a host name (RFC 6797
 * §8.2), and most machines behind published ports speak HTTP: at their host browsers are told to forget it.
 */
function hstsAt(config: Config, url: string): Record<string, string> {
  if (!config.publicUrl.startsWith('https:') || !url.startsWith('https:')) return {};
  const seconds = isPublishedAt(config, new URL(url).hostname) ? 0 : YEAR_SECONDS;
  return { 'strict-transport-security': `max-age=${seconds}` };
}
