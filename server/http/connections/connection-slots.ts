/**
 * Connection limits. Each address has a share of the connections. At the limit, an idle connection
 * is closed, else one with a slow reader, else one on which the address with the most connections
 * is still sending a request, else one of the account that uses most. A few slots are reserved for
 * health checks.
 */
import { type BlockList, isIP, type Socket } from 'node:net';
import type { Clock } from '../../platform/clock.ts';
import { sourceOf } from '../../platform/host/caller-networks.ts';
import { blockListOf } from '../exchange.ts';

export interface SlotDeps {
  readonly clock: Clock;
  readonly maxConnections: number;
  readonly maxPerAddress: number;
  /** Addresses and networks shared by many callers; they have no limit of their own. */
  readonly trustedProxies: readonly string[];
  /** True if the address belongs to another node, which many callers share too. */
  readonly isNode?: (address: string) => boolean;
}

export type Slot =
  | { readonly kind: 'ordinary' | 'reserve' }
  /** Why no slot is free. */
  | { readonly kind: 'none'; readonly reason: string };

export interface Sockets {
  /** Closes a connection to free its slot and stops counting it. */
  close(socket: Socket, why: { readonly reason: string; readonly wasUsed: boolean }): void;
  /** True while a request on the connection is incomplete. */
  isReceiving(socket: Socket): boolean;
  /** The connection with the slowest reader, among all or these; each is reported once. */
  slowReader(of?: ReadonlySet<Socket>): Socket | undefined;
  /** A connection of the account that uses most, beyond a small share; each is reported once. */
  crowding(): Socket | undefined;
}

/** A younger connection, or one that became idle later, may be about to send. */
const MIN_IDLE_MS = 1000;
const MAX_RESERVE = 32;

interface Held {
  readonly source: string;
  readonly hasShare: boolean;
  readonly isReserve: boolean;
  /** Number of requests without a response. */
  open: number;
  /** True if a request on the connection was answered. */
  wasUsed: boolean;
  /** Time when the connection was opened or became idle. */
  since: number;
}

interface Source {
  /** Oldest first. */
  readonly all: Set<Socket>;
  /** Longest idle first, as #idle. */
  readonly idle: Set<Socket>;
}

export class ConnectionSlots {
  readonly #deps: SlotDeps;
  readonly #control: Sockets;
  readonly #proxies: BlockList;
  readonly #reserveSlots: number;
  readonly #held = new Map<Socket, Held>();
  readonly #sources = new Map<string, Source>();
  readonly #idle = new Set<Socket>();
  /** Oldest first. */
  readonly #reserve = new Set<Socket>();

  constructor(deps: SlotDeps, control: Sockets) {
    this.#deps = deps;
    this.#control = control;
    this.#proxies = blockListOf(deps.trustedProxies);
    this.#reserveSlots = Math.min(MAX_RESERVE, Math.ceil(deps.maxConnections / 50));
  }

  get size(): number {
    return this.#held.size;
  }

  /** Whether a new connection takes the slot of another. */
  get isFull(): boolean {
    return this.#held.size - this.#reserve.size >= this.#deps.maxConnections;
  }

  /** True for a connection that only serves health checks. */
  isReserve(socket: Socket): boolean {
    return this.#reserve.has(socket);
  }

  /** Assigns a slot to a new connection, until leave(). */
  enter(socket: Socket): Slot {
    const address = socket.remoteAddress ?? '';
    const source = sourceOf(address);
    const hasShare = !this.#isProxy(address) && this.#deps.isNode?.(address) !== true;
    const reason = this.#freeSlot(source, hasShare);
    if (reason === undefined) {
      this.#add(socket, { source, hasShare, isReserve: false });
      return { kind: 'ordinary' };
    }
    if (!this.#makeReserve(source)) return { kind: 'none', reason };
    this.#add(socket, { source, hasShare, isReserve: true });
    return { kind: 'reserve' };
  }

  /** Call when a request on the connection begins. */
  busy(socket: Socket): void {
    const held = this.#held.get(socket);
    if (held === undefined) return;
    held.open++;
    this.#idle.delete(socket);
    this.#sources.get(held.source)?.idle.delete(socket);
  }

  /** Call when a request on the connection was answered. */
  done(socket: Socket): void {
    const held = this.#held.get(socket);
    if (held === undefined) return;
    held.open--;
    held.wasUsed = true;
    if (held.open === 0) this.#rest(socket, held);
  }

  /** Call when the connection was closed. Idempotent. */
  leave(socket: Socket): void {
    const held = this.#held.get(socket);
    if (held === undefined) return;
    this.#held.delete(socket);
    this.#idle.delete(socket);
    if (this.#reserve.delete(socket)) return;
    const source = this.#sources.get(held.source) as Source;
    source.idle.delete(socket);
    source.all.delete(socket);
    if (source.all.size === 0) this.#sources.delete(held.source);
  }

  /** Closes an idle connection if no slot is free. Returns the reason if there is still no slot. */
  #freeSlot(source: string, hasShare: boolean): string | undefined {
    const { maxPerAddress } = this.#deps;
    const own = this.#sources.get(source);
    if (hasShare && own !== undefined && own.all.size >= maxPerAddress) {
      const reason = `More than ${maxPerAddress} connections from one address are open`;
      if (this.#closeOldest(own.idle, reason)) return undefined;
      return this.#closeSlowReader(reason, own.all) ? undefined : reason;
    }
    if (!this.isFull) return undefined;
    const reason = 'Too many connections are open';
    if (this.#closeOldest(this.#idle, reason) || this.#closeSlowReader(reason)) return undefined;
    // A proxy has many callers: each is treated as a caller without other connections.
    if (this.#closeReceiving(hasShare ? (own?.all.size ?? 0) : 0, reason)) return undefined;
    return this.#closeFirst(() => this.#control.crowding(), reason) ? undefined : reason;
  }

  #closeSlowReader(reason: string, of?: ReadonlySet<Socket>): boolean {
    return this.#closeFirst(() => this.#control.slowReader(of), reason);
  }

  #closeFirst(next: () => Socket | undefined, reason: string): boolean {
    for (;;) {
      const socket = next();
      if (socket === undefined) return false;
      // The connection may have ended since it was found.
      if (this.#reserve.has(socket) || !this.#held.has(socket)) continue;
      this.leave(socket);
      this.#control.close(socket, { reason, wasUsed: true });
      return true;
    }
  }

  /** Closes a connection of the address with the most slow senders, so that a few cannot hold all slots. */
  #closeReceiving(ownCount: number, reason: string): boolean {
    let largest: Source | undefined;
    for (const source of this.#sources.values()) {
      if (this.#isOfProxy(source)) continue;
      if (source.all.size > (largest?.all.size ?? ownCount + 1)) largest = source;
    }
    const given = largest && [...largest.all].filter((socket) => this.#control.isReceiving(socket));
    return given !== undefined && this.#closeOldest(given, reason);
  }

  /** Limits an address to a quarter of the reserve, so that one address cannot exhaust it. */
  #makeReserve(source: string): boolean {
    const own = [...this.#reserve].filter((socket) => this.#held.get(socket)?.source === source);
    const reason = 'This connection is reserved for health checks';
    if (own.length >= Math.ceil(this.#reserveSlots / 4)) return this.#closeOldest(own, reason);
    return this.#reserve.size < this.#reserveSlots || this.#closeOldest(this.#reserve, reason);
  }

  #closeOldest(sockets: Iterable<Socket>, reason: string): boolean {
    for (const socket of sockets) {
      const held = this.#held.get(socket);
      if (held === undefined || this.#deps.clock.monotonic() - held.since < MIN_IDLE_MS) return false;
      this.leave(socket);
      this.#control.close(socket, { reason, wasUsed: held.wasUsed });
      return true;
    }
    return false;
  }

  #add(socket: Socket, kind: Pick<Held, 'source' | 'hasShare' | 'isReserve'>): void {
    const held = { ...kind, open: 0, wasUsed: false, since: 0 };
    this.#held.set(socket, held);
    if (kind.isReserve) {
      this.#reserve.add(socket);
      held.since = this.#deps.clock.monotonic();
      return;
    }
    const source = this.#sources.get(kind.source) ?? { all: new Set(), idle: new Set() };
    source.all.add(socket);
    this.#sources.set(kind.source, source);
    this.#rest(socket, held);
  }

  #rest(socket: Socket, held: Held): void {
    if (held.isReserve) return;
    held.since = this.#deps.clock.monotonic();
    this.#idle.add(socket);
    if (held.hasShare) this.#sources.get(held.source)?.idle.add(socket);
  }

  #isOfProxy({ all }: Source): boolean {
    const [first] = all;
    return first !== undefined && this.#held.get(first)?.hasShare === false;
  }

  #isProxy(address: string): boolean {
    const plain = address.replace(/^::ffff:(?=\d+\.)/, '').replace(/%.*$/, '');
    return isIP(plain) !== 0 && this.#proxies.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4');
  }
}
