/**
 * User ids of processes that were started before their database was known. Each belongs to one
 * process at a time, and afterwards to the folder of the database that got the process, until the
 * folder has its own user again.
 */
import type { UserRange } from '../../../platform/host/other-users.ts';

export class SpareUsers {
  readonly #range: UserRange | null;
  readonly #held = new Set<number>();
  #next = 0;

  /** `range` null: all processes run as our own user. */
  constructor(range: UserRange | null) {
    this.#range = range;
  }

  /** An unused id, reserved until release(); undefined: all are taken. */
  take(): number | null | undefined {
    if (this.#range === null) return null;
    const { first, count } = this.#range;
    // In rotation: a released id is reused as late as possible.
    for (let tries = 0; tries < count; tries++) {
      const uid = first + (this.#next++ % count);
      if (this.#held.has(uid)) continue;
      this.#held.add(uid);
      return uid;
    }
    return undefined;
  }

  /** Reserves an id that a folder has from an earlier run. False: out of range. */
  hold(uid: number): boolean {
    if (this.#range === null) return false;
    const { first, count } = this.#range;
    if (uid < first || uid >= first + count) return false;
    this.#held.add(uid);
    return true;
  }

  release(uid: number | null): void {
    if (uid !== null) this.#held.delete(uid);
  }
}
