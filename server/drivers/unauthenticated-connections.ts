/**
 * Connections of those who have not logged in, of which there is a bounded number: whoever comes finds a
 * slot, for which another stranger is evicted. Drivers keep one such connection as long as they live, to
 * look after the server; it sends a greeting every few seconds, and goes last.
 */
import { sourceOf } from '../platform/caller-networks.ts';

export interface Stranger {
  /** Where it comes from. */
  readonly host: string;
  /** Ends it at once. */
  end(): void;
}

/** Silent, heard once, or heard again after a while. The first kind is dropped first. */
const KINDS = ['silent', 'heard', 'steady'] as const;
type Kind = (typeof KINDS)[number];

/** A connection that sends again after this long is a driver's monitor. */
const STEADY_MS = 4000;

interface Held {
  readonly source: string;
  kind: Kind;
  /** When it sent its first message. */
  heardAt: number;
}

export class Strangers {
  readonly #now: () => number;
  readonly #held = new Map<Stranger, Held>();
  /** Connections of each kind by source, longest unheard first. */
  readonly #kinds: Readonly<Record<Kind, Map<string, Set<Stranger>>>> = {
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
    return this.#held.size;
  }

  enter(stranger: Stranger): void {
    const held: Held = { source: sourceOf(stranger.host), kind: 'silent', heardAt: 0 };
    this.#held.set(stranger, held);
    this.#put(stranger, held);
  }

  /** It has sent a message. Does nothing for who is no stranger. */
  heard(stranger: Stranger): void {
    const held = this.#held.get(stranger);
    if (held === undefined) return;
    this.#take(stranger, held);
    if (held.kind === 'silent') Object.assign(held, { kind: 'heard', heardAt: this.#now() });
    else if (this.#now() - held.heardAt >= STEADY_MS) held.kind = 'steady';
    this.#put(stranger, held);
  }

  /** It has logged in, or is gone. Called again, it does nothing. */
  leave(stranger: Stranger): void {
    const held = this.#held.get(stranger);
    if (held === undefined) return;
    this.#held.delete(stranger);
    this.#take(stranger, held);
  }

  /** Ends one: of the first kind that has more than its third, and of the address with most of these. */
  evict(): void {
    const third = this.#held.size / KINDS.length;
    const kind = KINDS.find((each) => this.#counts[each] >= third);
    if (kind === undefined) return;
    let largest = new Set<Stranger>();
    for (const each of this.#kinds[kind].values()) if (each.size > largest.size) largest = each;
    const [oldest] = largest;
    if (oldest === undefined) return;
    this.leave(oldest);
    oldest.end();
  }

  #put(stranger: Stranger, { kind, source }: Held): void {
    const sources = this.#kinds[kind];
    sources.set(source, (sources.get(source) ?? new Set()).add(stranger));
    this.#counts[kind]++;
  }

  #take(stranger: Stranger, { kind, source }: Held): void {
    const sources = this.#kinds[kind];
    const all = sources.get(source);
    all?.delete(stranger);
    if (all?.size === 0) sources.delete(source);
    this.#counts[kind]--;
  }
}
