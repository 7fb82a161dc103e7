/**
 * Limits the processes of databases of all engines together. When the limit is reached, the least recently
 * used idle process ends; an account at its share ends one of its own.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../../platform/errors.ts';

const STEP_MS = 20;
/** How long a call waits for a process of another database to end. */
const WAIT_MS = 10_000;
/** Share of the limit that one account may use. */
const SHARE = 3 / 4;

/** A process without work. */
export interface IdleChild {
  readonly name: string;
  readonly accountId: number;
  /** The lowest ends first: a time of the monotonic clock, higher with open sessions. */
  readonly rank: number;
}

/** A pool whose processes count. */
export interface SlotUser {
  idle(): readonly IdleChild[];
  /** Ends the process of that name if it is still idle. */
  endIdle(name: string): Promise<void>;
}

export class ChildSlots {
  readonly #most: number;
  readonly #share: number;
  readonly #users: SlotUser[] = [];
  /** Processes by account. */
  readonly #taken = new Map<number, number>();
  #count = 0;

  constructor(most: number) {
    this.#most = most;
    this.#share = Math.max(1, Math.min(most - 1, Math.ceil(most * SHARE)));
  }

  join(user: SlotUser): void {
    this.#users.push(user);
  }

  /** True when one more for the account needs no process to end. */
  isFree(accountId: number): boolean {
    return this.#count < this.#most && !this.#hasShare(accountId);
  }

  /**
   * Waits for a free slot; the result releases it, once. Throws `engine_unavailable` when none becomes free.
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

  /** Ends the least recently used idle process, of that account if given. False: none is idle. */
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
  return new AppError('engine_unavailable', 'Too many databases are active at the same time', {
    hint: 'Retry in a moment; the operator can raise CLOUDLET_DATABASE_PROCESSES',
  });
}

function tooManyOfOne(share: number): AppError {
  const detail = `${share} databases of this account are active, which is the limit`;
  return new AppError('engine_unavailable', detail, { hint: 'Retry when one of them is idle' });
}
