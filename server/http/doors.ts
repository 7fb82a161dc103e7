/**
 * The entry points of a cloud, one per protocol on its two origins, and the parts they share: the
 * connection guard, memory for bodies and responses, limits, forwarding to another node.
 */
import type { Config } from '../config/config.ts';
import { listIn, PRIVATE_NAMES, s3HostNames } from '../config/host-names.ts';
import { BodyMemory } from './bodies/body-memory.ts';
import type { ControlSockets } from './caller.ts';
import { ConnectionGuard } from './connections/connection-guard.ts';
import { Door, type DoorDeps, TrustedProxies, UnreadResponses } from './exchange.ts';
import type { Forwarding } from './forwarding/forwarding.ts';
import { callLimits } from './limits/call-limits.ts';
import { apiHeaders, dataHeaders } from './origin-rules.ts';
import { hostsOf } from './origins.ts';

export interface DoorsDeps extends Pick<DoorDeps, 'clock' | 'log' | 'meters'> {
  readonly control: ControlSockets;
  readonly forwarding: Forwarding;
  /** Number of connections that the file descriptors allow. */
  readonly connections: number;
  /** The response headers with the request id in S3. */
  readonly s3IdHeaders: readonly string[];
}

/** Memory budget of request bodies, in total, on both origins. */
const REQUEST_BODIES_BYTES = 256 * 2 ** 20;

/** These entry points of the two origins serve WebSockets too. */
export function openDoors(config: Config, deps: DoorsDeps) {
  const { clock, log, meters, control, forwarding } = deps;
  const guard = connectionGuard(config, deps);
  const proxies = new TrustedProxies(listIn(config.trustedProxies), forwarding.forwarded);
  const { limiter, s3Limiter, routeLimiters } = callLimits(config, clock);
  // Each connection needs two descriptors here.
  const most = Math.ceil(Math.min(config.maxConnections, deps.connections) / 2);
  const frame = {
    clock,
    log,
    meters,
    proxies,
    hostNames: [config.host, ...hostsOf(config.publicUrl, config.dataUrl), ...PRIVATE_NAMES],
    isReserve: guard.isReserve.bind(guard),
    limiter,
    unread: new UnreadResponses(config.unreadResponsesMb * 2 ** 20),
  };
  const headers = dataHeaders(config);
  return {
    guard,
    proxies,
    routeLimiters,
    bodies: new BodyMemory(REQUEST_BODIES_BYTES, clock),
    forward: forwarding.begin({ proxies, control, most }),
    api: new Door({ ...frame, headers: apiHeaders(config) }),
    data: new Door({ ...frame, headers }),
    s3: new Door({
      ...frame,
      headers,
      idHeaders: deps.s3IdHeaders,
      hostNames: [...frame.hostNames, ...s3HostNames(config)],
      limiter: s3Limiter,
      protocol: 's3',
    }),
    // Errors of machines' web servers do not concern the operator.
    named: new Door({
      ...frame,
      headers: {},
      hostNames: [`.${config.appsDomain}`],
      protocol: 'machine',
      levelOf: () => 'debug',
    }),
  };
}

function connectionGuard(
  config: Config,
  { clock, log, connections, forwarding: { forwarded } }: DoorsDeps,
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
    trustedProxies: listIn(config.trustedProxies),
    isNode: (address) => forwarded?.isNode(address) === true,
    slowSeconds: config.slowBodySeconds,
    pauseSeconds: config.pausedResponseSeconds,
    maxWaitingBytes: config.unreadResponsesMb * 2 ** 20,
  });
}
