/**
 * User ids of processes that were started before anybody knew for which database. Each is one process's at a
 * time, and afterwards the folder's of the database that got the process, until that has its own user again.
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

  /** An id that nothing has; undefined: all are taken. It is the caller's until release(). */
  take(): number | null | undefined {
    if (this.#range === null) return null;
    const { first, count } = this.#range;
    // In turn: an id that was just given back is the last to be given again.
    for (let tries = 0; tries < count; tries++) {
      const uid = first + (this.#next++ % count);
      if (this.#held.has(uid)) continue;
      this.#held.add(uid);
      return uid;
    }
    return undefined;
  }

  /** Takes an id that a folder has since an earlier run. False: it is none of these. */
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
