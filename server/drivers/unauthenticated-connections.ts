/**
 * Connections that have not logged in, of a limited number: a new one always gets a slot, for which
 * another one is evicted. Drivers keep one such connection permanently to monitor the server; it
 * sends a message every few seconds, and is evicted last.
 */
import { sourceOf } from '../platform/host/caller-networks.ts';

export interface UnauthenticatedConnection {
  /** Address of the client. */
  readonly host: string;
  /** Closes the connection immediately. */
  end(): void;
}

/** Silent, heard once, or heard again after a while. The first kind is dropped first. */
const KINDS = ['silent', 'heard', 'steady'] as const;
type Kind = (typeof KINDS)[number];

/** A connection that sends again after this long is a driver's monitor. */
const STEADY_MS = 4000;

interface Entry {
  readonly source: string;
  kind: Kind;
  /** When the client sent its first message. */
  heardAt: number;
}

export class UnauthenticatedConnections {
  readonly #now: () => number;
  readonly #entries = new Map<UnauthenticatedConnection, Entry>();
  /** Connections of each kind by source, longest unheard first. */
  readonly #kinds: Readonly<Record<Kind, Map<string, Set<UnauthenticatedConnection>>>> = {
    silent: new Map(),
    heard: new Map(),
    steady: new Map(),
  };
  readonly #counts: Record<Kind, number> = { silent: 0, heard: 0, steady: 0 };

  /** `now`: ms of any clock. */
  constructor(now: () => number) {
    this.#now = now;
  }

  get size(): number {
    return this.#entries.size;
  }

  enter(connection: UnauthenticatedConnection): void {
    const entry: Entry = { source: sourceOf(connection.host), kind: 'silent', heardAt: 0 };
    this.#entries.set(connection, entry);
    this.#put(connection, entry);
  }

  /** The connection has sent a message. Does nothing after leave(). */
  heard(connection: UnauthenticatedConnection): void {
    const entry = this.#entries.get(connection);
    if (entry === undefined) return;
    this.#take(connection, entry);
    if (entry.kind === 'silent') Object.assign(entry, { kind: 'heard', heardAt: this.#now() });
    else if (this.#now() - entry.heardAt >= STEADY_MS) entry.kind = 'steady';
    this.#put(connection, entry);
  }

  /** The connection has logged in, or has ended. A second call does nothing. */
  leave(connection: UnauthenticatedConnection): void {
    const entry = this.#entries.get(connection);
    if (entry === undefined) return;
    this.#entries.delete(connection);
    this.#take(connection, entry);
  }

  /** Ends one: of the first kind that exceeds its third, from the address with most of them. */
  evict(): void {
    const third = this.#entries.size / KINDS.length;
    const kind = KINDS.find((each) => this.#counts[each] >= third);
    if (kind === undefined) return;
    let largest = new Set<UnauthenticatedConnection>();
    for (const each of this.#kinds[kind].values()) if (each.size > largest.size) largest = each;
    const [oldest] = largest;
    if (oldest === undefined) return;
    this.leave(oldest);
    oldest.end();
  }

  #put(connection: UnauthenticatedConnection, { kind, source }: Entry): void {
    const sources = this.#kinds[kind];
    sources.set(source, (sources.get(source) ?? new Set()).add(connection));
    this.#counts[kind]++;
  }

  #take(connection: UnauthenticatedConnection, { kind, source }: Entry): void {
    const sources = this.#kinds[kind];
    const all = sources.get(source);
    all?.delete(connection);
    if (all?.size === 0) sources.delete(source);
    this.#counts[kind]--;
  }
}
