/**
 * Forwards requests unchanged to the host node, which has the machines and the tenants' databases:
 * bodies are streamed in both directions, and a client that disconnects ends the request there too.
 * The host authenticates again.
 */
import { type ClientRequest, type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { AppError, isAppError } from '../../platform/errors.ts';
import type { Membership, NodeView } from '../../platform/membership.ts';
import { SharedSlots } from '../../platform/shared-slots.ts';
import { dropRest } from '../bodies/body.ts';
import type { ControlSockets } from '../caller.ts';
import { type Exchange, ownerName, type TrustedProxies } from '../exchange.ts';
import { endToEnd, framing, hasBody, pairs } from './end-to-end.ts';
import { HostLife } from './host-life.ts';
import { FORWARDED_HEADER, type PassedCall, type SignedCalls } from './signed-calls.ts';
import { join } from './switched.ts';

/** A request to another node, without its body. */
export interface NodeRequest {
  readonly method: string;
  readonly path: string;
  /** Alternating names and values. */
  readonly headers: readonly string[];
  /** The connection switches to another protocol. */
  readonly isUpgrade: boolean;
  /** A kept connection may be closed just then. */
  readonly isFresh?: boolean;
  /** The two directions of the upgraded connection end separately. */
  readonly isHalfOpen?: boolean;
}

/** Connections to other nodes. */
export interface NodeLinks {
  /** Sends a request to the node at `url`. A failed connection is detected within seconds. */
  request(url: string, head: NodeRequest): ClientRequest;
}

export interface ForwardDeps {
  readonly membership: Pick<Membership, 'nodes' | 'isGone'>;
  readonly calls: Pick<SignedCalls, 'sign'>;
  readonly links: NodeLinks;
  readonly proxies: Pick<TrustedProxies, 'isSecure'>;
  readonly control: ControlSockets;
  readonly newId: () => string;
  /** Maximum concurrent forwarded requests and connections, without those to ports. */
  readonly most: number;
}

/** A request received by this node. */
export interface Incoming {
  readonly exchange: Exchange;
  readonly origin: PassedCall['origin'];
  /** Host that the client called, if a proxy sent one that differs from `Host`. */
  readonly calledAs?: { readonly host: string; readonly isSecure: boolean };
  /** This node can answer the request, with less detail. */
  readonly isOptional?: boolean;
}

/** The client's side of a connection that will switch protocols. */
export interface Upgraded {
  readonly client: Duplex;
  /** Bytes that the client sent right after its request. */
  readonly head: Buffer;
}

/** The protocol of a connection to a port of the host node. */
export const PORT_PROTOCOL = 'cloudlet-port';
export const PORT_PATH = '/ports/';
const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);
const CHECK_MS = 500;
/** 1012 is "service restart" in the registry of RFC 6455 §11.7. */
const HOST_GONE = {
  code: 1012,
  reason: 'The node with the machines and databases does not answer; connect again',
};
const STOPPING = { code: 1001, reason: 'Cloudlet is stopping' };

/** Held by one call of a client. */
interface Slot {
  /** The request that it has become. */
  upstream?: ClientRequest;
}

/** `unsent`: it had no effect; `stale`: the host closed the kept connection before it answered a read. */
type Passage = 'answered' | 'unsent' | 'stale';

/** A forwarded request or connection. */
interface Passed {
  readonly runId: string;
  /** No byte of the response has arrived. */
  readonly isWaiting: boolean;
  /** Bytes transferred until the last check. */
  readonly moved?: number;
}

export class Forward {
  readonly #deps: ForwardDeps;
  readonly #life: HostLife;
  readonly #underWay = new Map<ClientRequest | Duplex, Passed>();
  /** All requests go to one process, so one account must not exhaust its connections. */
  readonly #slots: SharedSlots<number | string>;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(deps: ForwardDeps) {
    this.#deps = deps;
    this.#life = new HostLife(deps.membership, deps.links);
    this.#slots = new SharedSlots(deps.most);
  }

  /**
   * Resolves once the host's response is being sent to the client, or with false if the host cannot
   * be reached and no byte of the body was read or sent, or if the request is a read that can be
   * answered here. Rejects with the AppError for the client.
   */
  async pass(incoming: Incoming, response: ServerResponse): Promise<boolean> {
    const { raw } = incoming.exchange;
    const host = await this.#life.responding();
    if (host === undefined) return false;
    if (response.destroyed) return true;
    const slot = this.#takeSlot(incoming, response);
    const send = (to: NodeView, isFresh: boolean) => {
      const upstream = this.#begin(to, incoming, { fields: framing(raw), slot, isFresh });
      response.once('close', () => upstream.destroy());
      upstream.once('upgrade', (_, socket) => socket.destroy());
      whenConnected(upstream, () => {
        raw.pipe(upstream);
        upstream.once('close', () => {
          raw.unpipe(upstream);
          if (!raw.complete) dropRest(raw);
        });
      });
      return answered(upstream, incoming, response);
    };
    // A host that drains is about to close its idle connections.
    const passage = await send(host, host.state === 'draining');
    if (passage !== 'stale') return passage === 'answered';
    const still = await this.#life.responding();
    if (response.destroyed) return true;
    if (still === undefined || this.#isClosed) return false;
    return (await send(still, true)) === 'answered';
  }

  /**
   * Like pass(), for a connection that the host may switch to another protocol. Rejects with
   * `host_unreachable` if there is no host node.
   */
  async upgrade(incoming: Incoming, { client, head }: Upgraded, onSwitch: () => void): Promise<void> {
    const { raw } = incoming.exchange;
    const fields = ['Upgrade', raw.headers.upgrade ?? '', 'Connection', 'Upgrade'];
    const host = await this.#life.responding();
    if (host === undefined) throw hostUnreachable();
    if (client.destroyed) return;
    const { runId } = host;
    const slot = this.#takeSlot(incoming, client);
    const upstream = this.#begin(host, incoming, { fields, slot });
    const response = new ServerResponse(raw);
    response.shouldKeepAlive = false;
    client.once('close', () => upstream.destroy());
    const switched = new Promise<Passage>((resolve) => {
      upstream.once('upgrade', (answer, host, hostHead) => {
        onSwitch();
        if (client.destroyed) host.destroy();
        else {
          this.#note(host, { runId, isWaiting: false });
          join({ client, head }, { answer, host, hostHead }, () => (this.#isClosed ? STOPPING : HOST_GONE));
        }
        resolve('answered');
      });
    });
    upstream.once('response', () => {
      response.assignSocket(client as Socket);
      response.once('finish', () => client.end());
    });
    upstream.end();
    const passage = await Promise.race([switched, answered(upstream, incoming, response)]);
    if (passage === 'unsent') throw hostUnreachable();
  }

  /**
   * Connects a client with that address, which connected to a port here, to the same port of the
   * host. Rejects with `host_unreachable`.
   */
  async connect(port: number, address: string): Promise<Socket> {
    const { calls, links, newId } = this.#deps;
    const host = await this.#life.responding();
    if (host === undefined) throw hostUnreachable();
    const { runId, url } = host;
    const at = { method: 'GET', url: `${PORT_PATH}${port}` };
    const call = { origin: 'port', address, requestId: newId(), isOperator: false, isSecure: false } as const;
    const signed = [FORWARDED_HEADER, calls.sign(at, { ...call, host: '' }, runId)];
    const headers = ['Host', new URL(url).host, 'Upgrade', PORT_PROTOCOL, 'Connection', 'Upgrade', ...signed];
    const head = { method: at.method, path: at.url, headers, isUpgrade: true, isHalfOpen: true };
    const upstream = links.request(url, head);
    this.#note(upstream, { runId, isWaiting: true });
    return new Promise((resolve, reject) => {
      const fail = () => reject(hostUnreachable());
      upstream.once('error', fail).once('close', fail);
      upstream.once('response', (answer) => {
        answer.resume();
        upstream.destroy();
      });
      upstream.once('upgrade', (_, socket: Socket, first: Buffer) => {
        if (first.length > 0) socket.unshift(first);
        socket.setTimeout(0).setNoDelay(true);
        this.#note(socket, { runId, isWaiting: false });
        resolve(socket);
      });
      upstream.end();
    });
  }

  /** Closes the forwarded connections. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    for (const each of this.#underWay.keys()) each.destroy();
  }

  /** A host that hangs or lost its network closes no connections, so we close them. */
  #note(passed: ClientRequest | Duplex, as: Passed): void {
    this.#underWay.set(passed, as);
    passed.once('close', () => {
      this.#underWay.delete(passed);
      if (this.#underWay.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    });
    this.#timer ??= setInterval(() => this.#cutLost(), CHECK_MS).unref();
  }

  #cutLost(): void {
    const { membership } = this.#deps;
    const isSilent = this.#life.isLost();
    for (const [passed, { runId, isWaiting, ...last }] of this.#underWay) {
      const moved = movedBytes(passed);
      // A host that transfers bytes is alive, even without heartbeats.
      const isStill = isWaiting && moved === last.moved;
      if (membership.isGone(runId) || (isSilent && isStill)) passed.destroy();
      else this.#underWay.set(passed, { runId, isWaiting, moved });
    }
  }

  /** Throws `overloaded`. The slot is released when `client` is closed. */
  #takeSlot({ exchange }: Incoming, client: ServerResponse | Duplex): Slot {
    const slot: Slot = {};
    const giveWay = () => {
      // After an upgrade, the request has ended.
      if (slot.upstream?.destroyed === false) slot.upstream.destroy(overloaded());
      else client.destroy();
    };
    const giveBack = this.#slots.take(ownerName(exchange), giveWay);
    if (giveBack === null) throw overloaded();
    client.once('close', giveBack);
    return slot;
  }

  #begin(
    host: NodeView,
    { exchange, origin, calledAs }: Incoming,
    { fields, slot, isFresh = false }: { fields: readonly string[]; slot: Slot; isFresh?: boolean },
  ): ClientRequest {
    const { calls, links, proxies, control } = this.#deps;
    const { raw, address, id: requestId } = exchange;
    const { method = 'GET', url: path = '/' } = raw;
    const call = {
      origin,
      address,
      requestId,
      isOperator: control.has(raw.socket),
      host: raw.headers.host ?? '',
      isSecure: proxies.isSecure(raw),
      ...calledAs,
    };
    const signed = [FORWARDED_HEADER, calls.sign({ method, url: path }, call, host.runId)];
    const headers = [...endToEnd(raw.rawHeaders), ...fields, ...signed];
    const isUpgrade = fields.includes('Upgrade');
    const upstream = links.request(host.url, { method, path, headers, isUpgrade, isFresh });
    slot.upstream = upstream;
    const { runId } = host;
    this.#note(upstream, { runId, isWaiting: true });
    upstream.once('response', () => this.#underWay.set(upstream, { runId, isWaiting: false }));
    return upstream;
  }
}

function movedBytes(passed: ClientRequest | Duplex): number {
  const { bytesRead = 0, bytesWritten = 0 } = ('socket' in passed ? passed.socket : null) ?? {};
  return bytesRead + bytesWritten;
}

function whenConnected(upstream: ClientRequest, work: () => void): void {
  upstream.once('socket', (socket: Socket) => {
    if (socket.connecting) socket.once('connect', work);
    else work();
  });
}

/** See Forward.pass(). */
function answered(
  upstream: ClientRequest,
  { exchange: { raw, responseHeaders }, origin, isOptional }: Incoming,
  response: ServerResponse,
): Promise<Passage> {
  return new Promise((resolve, reject) => {
    let isConnected = false;
    let isWhole = false;
    whenConnected(upstream, () => {
      isConnected = true;
    });
    upstream.once('finish', () => {
      isWhole = true;
    });
    upstream.on('error', (error) => {
      const isSafe = SAFE.has(raw.method ?? '');
      const isStale = upstream.reusedSocket && isSafe && !hasBody(raw) && !isAppError(error);
      if (isStale && !response.headersSent) resolve('stale');
      else if (!isConnected || (isSafe && isOptional)) resolve('unsent');
      else if (isWhole && !isSafe) reject(outcomeUnknown());
      else reject(isAppError(error, 'overloaded') ? error : hostUnreachable());
    });
    upstream.once('response', (answer) => {
      // The rate limits were applied at this node.
      relay(answer, response, origin === 'api' ? responseHeaders : {});
      resolve('answered');
    });
  });
}

function relay(
  answer: IncomingMessage,
  response: ServerResponse,
  ours: Readonly<Record<string, string>>,
): void {
  const fields = endToEnd(answer.rawHeaders);
  const names = new Set(pairs(fields).map(([name]) => name.toLowerCase()));
  const further = Object.entries(ours).filter(([name]) => !names.has(name));
  const cut = () => response.destroy();
  // A reader notices that a truncated response is incomplete.
  answer.once('error', cut).once('aborted', cut);
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage, [...further.flat(), ...fields]);
  response.flushHeaders();
  answer.pipe(response);
}

/** The response to a call that the host has not received completely. */
export function hostUnreachable(): AppError {
  return new AppError(
    'host_unreachable',
    'The node with the machines and databases does not answer; the call had no effect',
    {
      hint: 'Machines keep running. Try again; the operator can list the nodes with cloudlet nodes',
      retryAfterSeconds: 5,
    },
  );
}

function overloaded(): AppError {
  return new AppError(
    'overloaded',
    'Too many calls to the node with the machines and databases are in progress',
    {
      hint: 'Close some of your connections; without a free slot, the account with the most calls loses one',
      retryAfterSeconds: 2,
    },
  );
}

function outcomeUnknown(): AppError {
  return new AppError(
    'operation_interrupted',
    'The connection to the node with the machines and databases was lost: it is unknown whether the call took effect',
    {
      hint: 'Read the resource, or send the same call with the same Idempotency-Key again',
      retryAfterSeconds: 5,
    },
  );
}
