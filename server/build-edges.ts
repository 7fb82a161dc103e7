/** The part of the composition root that makes the edges: API, data origin, WebSockets. */
import type { Config } from './config/config.ts';
import { HranaEdge, type HranaEdgeDeps } from './hrana/hrana-edge.ts';
import { ConnectionGuard } from './http/connection-guard.ts';
import { createEdge, type EdgeDeps } from './http/edge.ts';
import { API_HEADERS, DATA_HEADERS, HSTS } from './http/headers.ts';
import { hostsOf } from './http/host-check.ts';
import { CallerLimits, RateLimiter } from './http/rate-limit.ts';
import { type SocketRoute, WebSockets, type WebSocketsDeps } from './http/web-sockets.ts';

type CommonEdgeDeps = Pick<EdgeDeps, 'clock' | 'log' | 'meters' | 'idempotency' | 'operations' | 'control'> &
  Pick<WebSocketsDeps, 'accounts'>;

const API_METHODS = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'];
const LINK_METHODS = ['GET', 'HEAD'];
const DATABASE_METHODS = ['GET', 'POST'];

/** The two origins, each with its limits and headers, and the guard over both's connections. */
export function buildEdges(
  config: Config,
  deps: CommonEdgeDeps & {
    apiRoutes: EdgeDeps['routes'];
    dataRoutes: EdgeDeps['routes'];
    sockets: readonly SocketRoute[];
    hrana: HranaEdgeDeps['databases'];
    /** How many connections the process has files for. */
    connections: number;
  },
) {
  const { clock, log } = deps;
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
    maxConnections,
    maxPerAddress: Math.ceil(config.maxConnectionsPerAddress * share),
    trustedProxies,
    slowSeconds: config.slowBodySeconds,
  });
  const isReserve = guard.isReserve.bind(guard);
  const common = { ...deps, trustedProxies, hostNames, isReserve };
  const api = createEdge({
    ...common,
    limiter,
    routeLimiters: new Map([['register', registrations]]),
    routes: deps.apiRoutes,
    headers: { ...API_HEADERS, ...hsts },
    cors: corsOrigins.length === 0 ? null : { origins: corsOrigins, methodsAt: () => API_METHODS },
  });
  const headers = { ...API_HEADERS, ...hsts };
  const { publicUrl } = config;
  new WebSockets({ ...common, limiter, routes: deps.sockets, headers, publicUrl }).serve(api);
  const data = createEdge({
    ...common,
    limiter: null,
    routeLimiters: new Map(),
    routes: deps.dataRoutes,
    headers: { ...DATA_HEADERS, ...hsts },
    // Whoever has a link may read what it leads to; whoever has a password, use the database.
    cors: { origins: ['*'], methodsAt: (url) => (url.startsWith('/db/') ? DATABASE_METHODS : LINK_METHODS) },
  });
  new HranaEdge({
    log,
    databases: deps.hrana,
    maxCalls: config.databaseCalls,
    maxBodyBytes: config.databaseCallMb * 2 ** 20,
  }).serve(data);
  guard.watch(api.server);
  guard.watch(data.server);
  return { api, data, guard };
}
