/**
 * The frame of a request, the same for every protocol: its id, the client's address, the `Host`
 * check, the reserved connections, the rate limit, the limit of unread responses, metrics, the
 * access log, and error handling. An edge opens each request through its Door, and adds its
 * protocol and its form of errors.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { BlockList, isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import type { AuditEntry, AuditTrail, DataAudit, DataTarget } from '../calls/audit.ts';
import { credentialOf, NOBODY, type Principal } from '../calls/principal.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError, ERRORS } from '../platform/errors.ts';
import { sourceOf } from '../platform/host/caller-networks.ts';
import { newId } from '../platform/ids.ts';
import type { Meters, Protocol } from '../platform/prometheus.ts';
import type { Forwarded, ForwardedCall } from './forwarding/signed-calls.ts';
import type { CallerLimits } from './limits/rate-limits.ts';
import { type HostCheck, hostCheck, isLoopback } from './origins.ts';
import { endWith, rawProblem } from './response.ts';

/** A request in progress, with the data for its log line. Fastify's requests are exchanges. */
export interface Exchange {
  readonly id: string;
  readonly raw: IncomingMessage;
  /** The client's address on arrival: a closed connection has none. */
  address: string;
  /** Time of the monotonic clock. */
  startedAt: number;
  principal: Principal;
  /** Headers collected for the response, whichever way it is sent. */
  responseHeaders: Record<string, string>;
  /** Name in metrics. */
  routeName: string;
}

export type Level = 'error' | 'warn' | 'info' | 'debug';

export interface DoorDeps {
  /** Name in metrics and log lines; default: `rest`. */
  readonly protocol?: Protocol;
  readonly clock: Clock;
  readonly log: Logger;
  readonly meters: Pick<Meters, 'observeRequest'>;
  readonly proxies: TrustedProxies;
  /** Headers of every response. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers with the id; default: `x-request-id`. */
  readonly idHeaders?: readonly string[];
  /** Additional names allowed in `Host` while the server listens only on loopback. */
  readonly hostNames: readonly string[];
  /** See ConnectionGuard.isReserve. */
  readonly isReserve: (socket: Socket) => boolean;
  /** null: no limit. */
  readonly limiter: CallerLimits | null;
  readonly unread: UnreadResponses;
  /** Log level; default: client errors are logged as info, server errors as errors. */
  readonly levelOf?: (status: number) => Level;
}

const ID_HEADERS = ['x-request-id'];
/** Error codes of server errors, in all protocols. */
const FAULTS: ReadonlySet<string> = new Set(['internal_error', 'data_corrupted', 'InternalError']);

/** The account that requested the response or the WebSocket, or that owns the link. */
const owners = new WeakMap<ServerResponse | Duplex, number>();

/** Call once the caller is known. Without an account, the address counts. */
export function ownResponse(response: ServerResponse | Duplex, accountId: number): void {
  if (accountId !== 0) owners.set(response, accountId);
}

export function ownerOf(response: ServerResponse | Duplex): number | undefined {
  return owners.get(response);
}

/**
 * 500 is a fault of ours; 501 is a missing feature that the caller requested, and other 5xx errors
 * are expected.
 */
function levelOf(status: number): Level {
  if (status === 500) return 'error';
  if (status > 501) return 'warn';
  return status >= 400 ? 'info' : 'debug';
}

/** The entry point for one protocol's requests. */
export class Door {
  readonly #deps: DoorDeps;
  #checkHost: HostCheck = () => {};

  constructor(deps: DoorDeps) {
    this.#deps = deps;
  }

  /** Call before the server listens: a loopback server only accepts its own names. */
  watch(server: Server): void {
    this.#checkHost = hostCheck(server, this.#deps.hostNames);
  }

  newId(): string {
    return newId('req', this.#deps.clock);
  }

  /** The id of a request: new, or assigned by another node. */
  idOf(request: IncomingMessage): string {
    return this.forwarded(request)?.requestId ?? this.newId();
  }

  /** Facts from the node that forwarded a request; undefined: it came from a client. */
  forwarded(request: IncomingMessage): ForwardedCall | undefined {
    return this.#deps.proxies.forwarded?.of(request);
  }

  /** Opens an exchange for a request of Node's, until its response is closed or record() is called. */
  open(raw: IncomingMessage, response: ServerResponse | null, routeName: string): Exchange {
    const exchange = { id: this.idOf(raw), raw, routeName } as Exchange;
    this.begin(exchange, response);
    return exchange;
  }

  /** Completes an exchange and records it when the response is closed. */
  begin(exchange: Exchange, response: ServerResponse | null): void {
    const { clock, proxies, headers, idHeaders = ID_HEADERS, isReserve } = this.#deps;
    exchange.startedAt = clock.monotonic();
    exchange.principal = NOBODY;
    exchange.address = proxies.addressOf(exchange.raw);
    exchange.responseHeaders = { ...headers };
    for (const name of idHeaders) exchange.responseHeaders[name] = exchange.id;
    if (response === null) return;
    response.on('close', () => this.record(exchange, response.headersSent ? response.statusCode : 499));
    if (isReserve(exchange.raw.socket)) response.setHeader('connection', 'close');
  }

  /**
   * Throws `bad_http` and `misdirected_request` for its `Host`, `overloaded` on a reserved
   * connection, `host_unreachable` for a request that another node should not have forwarded.
   */
  admit({ raw }: Exchange, usesReserve = false): void {
    const forwarded = this.forwarded(raw);
    if (forwarded === undefined) this.#checkHost(raw);
    else if (forwarded.refusal !== null) throw forwarded.refusal;
    if (usesReserve || !this.#deps.isReserve(raw.socket)) return;
    throw new AppError('overloaded', 'Too many connections are open', { retryAfterSeconds: 2 });
  }

  /**
   * Takes a token from the caller's limits and writes their headers. False: another node has done
   * so. Throws `rate_limited`.
   */
  limit(caller: Sender, headers: Record<string, string> = {}): boolean {
    if (this.forwarded(caller.raw)?.origin === 'api') return false;
    this.#deps.limiter?.take(caller, headers);
    return true;
  }

  /** Call once the sender is known: it owns the response, and appears in the log line. */
  identify(exchange: Exchange, response: ServerResponse, principal: Principal): void {
    exchange.principal = principal;
    ownResponse(response, principal.accountId);
  }

  /**
   * Counts a complete response until the client has read it. `owner`: default the sender. Throws
   * `overloaded`.
   */
  countUnread(bytes: number, response: ServerResponse, owner: Owner): void {
    this.#deps.unread.add(ownerName(owner), bytes, response);
  }

  /** Counts bytes that wait for a reader, until the result is called. Throws `overloaded`. */
  holdUnread(bytes: number, owner: Owner): () => void {
    return this.#deps.unread.hold(ownerName(owner), bytes);
  }

  /** Logs an error if it is a server error. */
  report({ id }: Pick<Exchange, 'id'>, error: Error & { readonly code: string }): void {
    if (!FAULTS.has(error.code)) return;
    this.#deps.log.error({ request_id: id, err: error.cause ?? error }, error.message);
  }

  /**
   * Sends the refusal with `send`. If a response is half sent, closes the connection: there is no
   * other way to report an error then.
   */
  refuse(
    exchange: Exchange,
    response: ServerResponse,
    { error, send }: { readonly error: Error & { readonly code: string }; readonly send: () => void },
  ): void {
    if (!(response.destroyed && wasAborted(error))) this.report(exchange, error);
    if (response.headersSent || response.destroyed) response.destroy();
    else send();
  }

  /** Refuses an upgrade with problem details, and logs it. */
  refuseUpgrade(exchange: Exchange, client: Duplex, error: AppError): void {
    this.report(exchange, error);
    this.record(exchange, ERRORS[error.code].http);
    if (client.writable) endWith(client, rawProblem(error, exchange.id, exchange.responseHeaders));
    else client.destroy();
  }

  /** Records the metric and the log line of an ended exchange, or of an upgrade that was answered. */
  record({ id, raw, address, startedAt, principal, routeName }: Exchange, status: number): void {
    const { clock, log, meters, protocol = 'rest' } = this.#deps;
    const seconds = (clock.monotonic() - startedAt) / 1000;
    meters.observeRequest({ protocol, route: routeName, status }, seconds);
    const level = (this.#deps.levelOf ?? levelOf)(status);
    if (!log.isLevelEnabled(level)) return;
    // The path without its query: a signed link's signature is a secret.
    const path = (raw.url ?? '').split('?', 1)[0];
    const account = principal.accountId;
    log[level]({ request_id: id, method: raw.method, path, status, seconds, account, address }, 'request');
  }
}

const MAX_AGENT = 200;
/** Maximum characters of an entry's target. */
const MAX_TARGET = 300;

/** Data from a request for its audit log entry. */
export type Given = Pick<Exchange, 'principal' | 'address' | 'id' | 'raw'>;

/** The end of a request, for its audit log entry. Default: no target, and no error. */
type Ended = Pick<AuditEntry, 'action' | 'outcome' | 'status'> & Partial<Pick<AuditEntry, 'target' | 'code'>>;

/** The audit entry of a request, of the caller's own account; one object, since each change makes one. */
export function entryOf(
  { principal, address, id, raw }: Given,
  { action, outcome, status, target = '', code = '' }: Ended,
): { -readonly [Name in keyof AuditEntry]: AuditEntry[Name] } {
  const { accountId, username, via } = principal;
  return {
    accountId,
    actorId: accountId,
    actor: username,
    via,
    credential: credentialOf(principal) ?? '',
    address,
    agent: String(raw.headers['user-agent'] ?? '').slice(0, MAX_AGENT),
    action,
    target: target.slice(0, MAX_TARGET),
    outcome,
    status,
    code,
    requestId: id,
    detail: '',
  };
}

/** Audit entries of a request about objects, with the name of the operation. */
export function dataAudit(trail: AuditTrail, request: Given, action: () => string): DataAudit {
  const entry = ({ accountId, bucket, name }: DataTarget, status: number): AuditEntry => {
    const target = `${bucket}/${name}`;
    const made = entryOf(request, { action: action(), outcome: 'done', status, target });
    made.accountId = accountId;
    return made;
  };
  return {
    wrote: (target) => trail.statements(entry(target, 200), 'data'),
    read: (target) => trail.note(entry(target, 200), 'data'),
  };
}

/** The caller that is limited, with the request. */
export type Sender = Pick<Exchange, 'principal' | 'address' | 'raw'>;

/** The owner of waiting bytes: an account, or else the sender of a request. */
export type Owner = number | Pick<Exchange, 'principal' | 'address'>;

/** The key under which slots are shared between owners. */
export function ownerName(owner: Owner): number | string {
  if (typeof owner === 'number') return owner;
  const { principal, address } = owner;
  return principal.via === 'nobody' ? sourceOf(address) : principal.accountId;
}

/** Smaller responses are not counted: their requests need as much memory. */
const COUNTED_BYTES = 64 * 1024;

export class UnreadResponses {
  readonly #maxBytes: number;
  readonly #waiting = new Map<number | string, number>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Counts a response until the client has read it or its connection has closed. Throws `overloaded`. */
  add(owner: number | string, bytes: number, response: ServerResponse): void {
    if (bytes < COUNTED_BYTES || response.destroyed) return;
    response.once('close', this.hold(owner, bytes));
  }

  /** Counts bytes until the result is called, once. Throws `overloaded`. */
  hold(owner: number | string, bytes: number): () => void {
    const waiting = this.#waiting.get(owner) ?? 0;
    if (waiting > 0 && waiting + bytes > this.#maxBytes) {
      throw new AppError('overloaded', 'Too many large responses have not been read yet', {
        hint: 'Read the responses of earlier calls, or close their connections',
        retryAfterSeconds: 1,
      });
    }
    this.#waiting.set(owner, waiting + bytes);
    return () => {
      const rest = (this.#waiting.get(owner) ?? 0) - bytes;
      if (rest > 0) this.#waiting.set(owner, rest);
      else this.#waiting.delete(owner);
    };
  }
}

/** A block list of addresses and `address/bits`. Other entries are ignored. */
export function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.trim().split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (isIP(address) === 0) continue;
    if (prefix === undefined) list.addAddress(address, family);
    else if (/^\d+$/.test(prefix)) list.addSubnet(address, Number(prefix), family);
  }
  return list;
}

export class TrustedProxies {
  readonly #proxies: BlockList;
  /** Requests forwarded by other nodes, with their caller; null: there are no other nodes. */
  readonly forwarded: Forwarded | null;

  constructor(networks: readonly string[], forwarded: Forwarded | null = null) {
    this.#proxies = blockListOf(networks);
    this.forwarded = forwarded;
  }

  /** The last address in X-Forwarded-For that is not a trusted proxy, else the peer. */
  addressOf(request: IncomingMessage): string {
    const { socket, headers } = request;
    const known = this.forwarded?.of(request)?.address;
    if (known !== undefined) return known;
    let address = socket.remoteAddress ?? '';
    const forwarded = String(headers['x-forwarded-for'] ?? '').split(',');
    while (this.#isProxy(address)) {
      const before = forwarded.pop()?.trim() ?? '';
      if (isIP(before) === 0) return address;
      address = before;
    }
    return address;
  }

  /** True if the client used TLS, to us or to a trusted proxy. */
  isSecure(request: IncomingMessage): boolean {
    const { socket, headers } = request;
    const known = this.forwarded?.of(request)?.isSecure;
    if (known !== undefined) return known;
    if ('encrypted' in socket) return true;
    if (!this.#isProxy(socket.remoteAddress ?? '')) return false;
    return (
      String(headers['x-forwarded-proto'] ?? '')
        .trim()
        .toLowerCase() === 'https'
    );
  }

  /** Whether the connection is private: local to this host, or encrypted up to the proxy. */
  isPrivate(request: IncomingMessage): boolean {
    const address = request.socket.remoteAddress ?? '';
    // The proxy itself may run on this host while its clients are elsewhere.
    return this.#isProxy(address) ? this.isSecure(request) : isLoopback(address);
  }

  #isProxy(address: string): boolean {
    const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
    const family = isIP(plain);
    return family !== 0 && this.#proxies.check(plain, family === 6 ? 'ipv6' : 'ipv4');
  }
}

/** Whether work was ended because its caller had left: nobody's fault. */
function wasAborted({ cause }: Error): boolean {
  return cause instanceof Error && cause.name === 'AbortError';
}
