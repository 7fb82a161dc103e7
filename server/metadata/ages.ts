/**
 * Maximum age of rows cached by a node. Other nodes may change them, so rows that decide access or
 * money are read again once they are 2 s old: that bounds a revocation even if messages are lost.
 * In a cloud of one process every change is made here, so cached rows never expire.
 */
import { ALONE, type Membership } from '../platform/membership.ts';
import type { Meters } from '../platform/prometheus.ts';
import type { Awaitable } from './metadata.ts';

/** A cache entry of this age is read again. */
export const MAX_AGE_MS = 2000;

export interface AgesDeps {
  readonly membership: Pick<Membership, 'isShared' | 'isCurrent'>;
  readonly clock: { monotonic(): number };
}

export class Ages {
  readonly #deps: AgesDeps;
  /** Other nodes may change cached data. */
  readonly isShared: boolean;
  /** Number of reads because a cache entry had expired. */
  rereads = 0;

  constructor(deps: AgesDeps) {
    this.#deps = deps;
    this.isShared = deps.membership.isShared;
  }

  /** Registers the figure of a cluster. */
  register(meters: Meters): void {
    if (!this.isShared) return;
    const help = 'Reads that refreshed expired cache entries';
    meters.gauge('cloudlet_rereads_total', { help, type: 'counter', read: () => this.rereads });
  }

  /** The time mark for a read; call before the read. */
  mark(): number {
    return this.isShared ? this.#deps.clock.monotonic() : 0;
  }

  /** Whether a cached value with this mark may be used without reading it again. */
  isTrusted(mark: number): boolean {
    return !this.isShared || (this.#deps.membership.isCurrent() && this.isYoung(mark));
  }

  /** Whether a running read with this mark may serve a new request. */
  isYoung(mark: number): boolean {
    return !this.isShared || this.#deps.clock.monotonic() - mark < MAX_AGE_MS;
  }
}

/** For one process, and for reads that no other node can change, such as from a snapshot. */
export const AGELESS = new Ages({ membership: ALONE, clock: { monotonic: () => 0 } });

interface Reading<V> {
  readonly mark: number;
  readonly work: Promise<V>;
}

/** Deduplicates concurrent reads of the same key. */
export class SharedReads<K, V> {
  readonly #ages: Ages;
  readonly #underWay = new Map<K, Reading<V>>();

  constructor(ages: Ages) {
    this.#ages = ages;
  }

  /** `keep` is called with the result and its mark, unless forget() was called since the read began. */
  run(key: K, read: () => Awaitable<V>, keep: (value: V, mark: number) => void): Promise<V> {
    const known = this.#underWay.get(key);
    if (known !== undefined && this.#ages.isYoung(known.mark)) return known.work;
    const mark = this.#ages.mark();
    const isLast = () => this.#underWay.get(key) === reading;
    const found = (async () => read())();
    const work = found
      .then((value) => {
        if (isLast()) keep(value, mark);
        return value;
      })
      .finally(() => {
        if (isLast()) this.#underWay.delete(key);
      });
    const reading = { mark, work };
    this.#underWay.set(key, reading);
    return work;
  }

  /** Later calls of run() read again. Without a key: all. */
  forget(key?: K): void {
    if (key === undefined) this.#underWay.clear();
    else this.#underWay.delete(key);
  }
}

export interface RememberedDeps<K, V> {
  readonly ages: Ages;
  readonly read: (key: K) => Awaitable<V>;
  /** Maximum entries; the oldest are dropped first. Default: no limit. */
  readonly most?: number;
}

/** A cache that reads an entry again only when the entry is no longer fresh. */
export class Remembered<K, V> {
  readonly #deps: RememberedDeps<K, V>;
  readonly #known = new Map<K, { readonly value: V; readonly mark: number }>();
  readonly #reads: SharedReads<K, V>;

  constructor(deps: RememberedDeps<K, V>) {
    this.#deps = deps;
    this.#reads = new SharedReads(deps.ages);
  }

  /** Returns immediately if cached and fresh. Rejects like `read`; rejections are not cached. */
  get(key: K): Awaitable<V> {
    const { ages, read } = this.#deps;
    const known = this.#known.get(key);
    if (known !== undefined) {
      if (ages.isTrusted(known.mark)) return known.value;
      ages.rereads++;
    }
    return this.#reads.run(
      key,
      () => read(key),
      (value, mark) => this.#keep(key, value, mark),
    );
  }

  /** Call after a commit that changed the value. Without a key: forgets all values. */
  forget(key?: K): void {
    this.#reads.forget(key);
    if (key === undefined) this.#known.clear();
    else this.#known.delete(key);
  }

  #keep(key: K, value: V, mark: number): void {
    const { most = Number.POSITIVE_INFINITY } = this.#deps;
    if (!this.#known.has(key) && this.#known.size >= most) {
      const [oldest] = this.#known.keys();
      this.#known.delete(oldest as K);
    }
    this.#known.set(key, { value, mark });
  }
}
