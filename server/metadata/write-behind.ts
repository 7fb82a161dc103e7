/**
 * Small facts that are kept in memory and written now and then, so that to note one costs no write: when
 * something was last used, how much was sent. A crash loses what was not written.
 */
import type { Changes } from './change.ts';
import type { Statement } from './metadata.ts';

const STATEMENTS_PER_COMMIT = 500;

export interface WriteBehindDeps<K, V> {
  readonly changes: Changes;
  readonly statementOf: (key: K, value: V) => Statement;
  /** Joins two facts about one key; without it the later one counts. */
  readonly join?: (earlier: V, later: V) => V;
}

export class WriteBehind<K, V> {
  readonly #deps: WriteBehindDeps<K, V>;
  #pending = new Map<K, V>();
  #writing = new Map<K, V>();

  constructor(deps: WriteBehindDeps<K, V>) {
    this.#deps = deps;
  }

  note(key: K, value: V): void {
    const { join } = this.#deps;
    const earlier = join && this.#pending.get(key);
    this.#pending.set(key, join && earlier !== undefined ? join(earlier, value) : value);
  }

  /** What is known of `key` and not written yet; when values are joined, the part noted last. */
  latest(key: K): V | undefined {
    return this.#pending.get(key) ?? this.#writing.get(key);
  }

  /** Writes what has gathered. What could not be stored is kept for the next call. */
  async flush(): Promise<void> {
    if (this.#pending.size === 0 || this.#writing.size > 0) return;
    this.#writing = this.#pending;
    this.#pending = new Map();
    const entries = [...this.#writing];
    let stored = 0;
    try {
      for (; stored < entries.length; stored += STATEMENTS_PER_COMMIT) {
        const part = entries.slice(stored, stored + STATEMENTS_PER_COMMIT);
        await this.#deps.changes.store(part.map(([key, value]) => this.#deps.statementOf(key, value)));
      }
    } finally {
      const noted = this.#pending;
      this.#pending = new Map(entries.slice(stored));
      this.#writing = new Map();
      for (const [key, value] of noted) this.note(key, value);
    }
  }
}
