/**
 * When versions were last downloaded. Kept in memory and written every few seconds, so that a download
 * costs no write; listings overlay what is not written yet. A crash loses at most those seconds.
 */
import type { Metadata } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import type { ObjectSql } from './object-sql.ts';

export interface AccessTimesDeps {
  readonly metadata: Metadata;
  readonly store: ObjectSql;
  readonly clock: Clock;
}

const STATEMENTS_PER_COMMIT = 500;

export class AccessTimes {
  readonly #deps: AccessTimesDeps;
  #pending = new Map<number, number>();
  /** Being written; still overlaid until it is. */
  #writing = new Map<number, number>();

  constructor(deps: AccessTimesDeps) {
    this.#deps = deps;
  }

  /** `version` is a row id. */
  touch(version: number): void {
    this.#pending.set(version, this.#deps.clock.now());
  }

  /** What is not written yet, ms, or undefined. */
  latest(version: number): number | undefined {
    return this.#pending.get(version) ?? this.#writing.get(version);
  }

  /** Writes what has gathered. On failure it is kept for the next call. */
  async flush(): Promise<void> {
    if (this.#pending.size === 0 || this.#writing.size > 0) return;
    this.#writing = this.#pending;
    this.#pending = new Map();
    try {
      const statements = [...this.#writing].map(([version, at]) =>
        this.#deps.store.setLastAccessed(version, at),
      );
      for (let i = 0; i < statements.length; i += STATEMENTS_PER_COMMIT) {
        await this.#deps.metadata.commit(statements.slice(i, i + STATEMENTS_PER_COMMIT));
      }
    } catch (error) {
      this.#pending = new Map([...this.#writing, ...this.#pending]);
      throw error;
    } finally {
      this.#writing = new Map();
    }
  }
}
