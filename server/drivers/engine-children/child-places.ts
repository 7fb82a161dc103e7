/**
 * How many processes databases may have, of all engines together. When there is no place left, the one that
 * was not used for longest ends; an account that has its share ends one of its own.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../../platform/errors.ts';

const STEP_MS = 20;
/** How long a call waits until a process of another database can end. */
const WAIT_MS = 10_000;
/** Of all places, those that one account may have. */
const SHARE = 3 / 4;

/** A process that has nothing to do. */
export interface IdleChild {
  readonly name: string;
  readonly accountId: number;
  /** The lowest ends first: a time of the monotonic clock, later where sessions are open. */
  readonly rank: number;
}

/** Whoever has processes in these places. */
export interface PlacesUser {
  idle(): readonly IdleChild[];
  /** Ends the one of that name, if it still has nothing to do. */
  endIdle(name: string): Promise<void>;
}

export class ChildPlaces {
  readonly #most: number;
  readonly #share: number;
  readonly #users: PlacesUser[] = [];
  /** By account. */
  readonly #taken = new Map<number, number>();
  #count = 0;

  constructor(most: number) {
    this.#most = most;
    this.#share = Math.max(1, Math.min(most - 1, Math.ceil(most * SHARE)));
  }

  join(user: PlacesUser): void {
    this.#users.push(user);
  }

  /** True while one more of the account needs nobody to end. */
  isFree(accountId: number): boolean {
    return this.#count < this.#most && !this.#hasShare(accountId);
  }

  /**
   * Waits for a place; the result gives it back, once. Throws `engine_unavailable` when nobody makes room.
   */
  async take(accountId: number): Promise<() => void> {
    for (let waited = 0; !this.isFree(accountId); waited += STEP_MS) {
      const hasShare = this.#hasShare(accountId);
      if (await this.#endOne(hasShare ? accountId : null)) continue;
      if (waited >= WAIT_MS) throw hasShare ? tooManyOfOne(this.#share) : tooMany();
      await sleep(STEP_MS);
    }
    this.#add(accountId, 1);
    let isGiven = false;
    return () => {
      if (!isGiven) this.#add(accountId, -1);
      isGiven = true;
    };
  }

  #hasShare(accountId: number): boolean {
    return (this.#taken.get(accountId) ?? 0) >= this.#share;
  }

  /** Ends the one that was not used for longest, of that account if one is named. False: none is idle. */
  async #endOne(accountId: number | null): Promise<boolean> {
    const idle = this.#users.flatMap((user) => user.idle().map((child) => ({ user, child })));
    const [first] = idle
      .filter(({ child }) => accountId === null || child.accountId === accountId)
      .sort((one, other) => one.child.rank - other.child.rank);
    await first?.user.endIdle(first.child.name);
    return first !== undefined;
  }

  #add(accountId: number, more: number): void {
    this.#count += more;
    const taken = (this.#taken.get(accountId) ?? 0) + more;
    if (taken === 0) this.#taken.delete(accountId);
    else this.#taken.set(accountId, taken);
  }
}

function tooMany(): AppError {
  return new AppError('engine_unavailable', 'Too many databases are in use at the same time', {
    hint: 'Try again in a moment; the operator can raise CLOUDLET_DATABASE_PROCESSES',
  });
}

function tooManyOfOne(share: number): AppError {
  const detail = `${share} databases of this account are at work, as many as may be`;
  return new AppError('engine_unavailable', detail, { hint: 'Try again when one of them is done' });
}
