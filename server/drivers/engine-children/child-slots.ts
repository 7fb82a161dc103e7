/**
 * Shares the slots for processes of databases, of all engines together, among accounts. The longest
 * waiting call gets the next slot; while others wait, an account gets at most a quarter of them.
 * When all are taken, the least recently used idle process ends; and after a call has waited for
 * two seconds, the longest-running statement of the account with the most slots.
 */
import { AppError } from '../../platform/errors.ts';
import { afterPatience } from '../../platform/host/after-patience.ts';

const STEP_MS = 20;
/** How long a call waits for a slot, on a host that is not busy. */
const WAIT_MS = 30_000;
/** How long a call waits before a statement of another account is ended for it. */
const PATIENCE_MS = 2000;
/** Processes idle for less are not ended for accounts beyond their share. */
const REST_MS = 5000;
/** Maximum share of the slots per account. */
const SHARE = 3 / 4;
/** The same while accounts with fewer slots wait. */
const FAIR_SHARE = 1 / 4;

/** A process without work. */
export interface IdleChild {
  readonly name: string;
  readonly accountId: number;
  /** The lowest is ended first: a time of the monotonic clock, higher with open sessions. */
  readonly rank: number;
  /** Idle time. */
  readonly restsMs: number;
}

/** A process with running statements, which may be ended. */
export interface BusyChild {
  readonly name: string;
  readonly accountId: number;
  /** When the oldest statement began, a time of the monotonic clock. */
  readonly since: number;
}

/** A pool whose processes count. */
export interface SlotUser {
  idle(): readonly IdleChild[];
  busy(): readonly BusyChild[];
  /** Ends the process if it is still idle. */
  endIdle(name: string): Promise<void>;
  /** Ends the process with its statements, which fail with the reason. */
  endBusy(name: string, why: string): Promise<void>;
}

interface Waiter {
  readonly accountId: number;
  /** False once it has waited for too long. */
  isPatient: boolean;
  readonly give: () => void;
}

export class ChildSlots {
  readonly #most: number;
  readonly #waitMs: number;
  readonly #share: number;
  readonly #fairShare: number;
  readonly #users: SlotUser[] = [];
  /** Processes by account. */
  readonly #taken = new Map<number, number>();
  #count = 0;
  /** Longest wait first. */
  readonly #waiters = new Set<Waiter>();
  /** Processes being ended for waiters, with their accounts. */
  readonly #ending = new Map<string, number>();
  /** Idle processes that got new work before they could be ended. */
  readonly #spared = new Set<string>();
  #stepping: NodeJS.Timeout | null = null;

  constructor(most: number, waitMs = WAIT_MS) {
    this.#most = most;
    this.#waitMs = waitMs;
    this.#share = Math.max(1, Math.min(most - 1, Math.ceil(most * SHARE)));
    this.#fairShare = Math.max(1, Math.floor(most * FAIR_SHARE));
  }

  join(user: SlotUser): void {
    this.#users.push(user);
  }

  /** Number of free slots. */
  get free(): number {
    return this.#most - this.#count;
  }

  /** True if another slot for the account displaces no other process. */
  isFree(accountId: number): boolean {
    return this.#waiters.size === 0 && this.#hasPlace(accountId);
  }

  /**
   * Waits for a free slot; the result releases it, once. Throws `engine_unavailable` if none
   * becomes free, and the reason of the signal.
   */
  async take(accountId: number, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { accountId, isPatient: true, give: resolve };
    const patience = setTimeout(() => {
      waiter.isPatient = false;
    }, PATIENCE_MS);
    const endWait = afterPatience(this.#waitMs, (waitedMs) => reject(this.#tooMany(accountId, waitedMs)));
    const leave = () => reject(signal?.reason);
    signal?.addEventListener('abort', leave, { once: true });
    this.#waiters.add(waiter);
    this.#step();
    try {
      await promise;
    } finally {
      clearTimeout(patience);
      endWait();
      signal?.removeEventListener('abort', leave);
      this.#waiters.delete(waiter);
    }
    let isGiven = false;
    return () => {
      if (!isGiven) this.#add(accountId, -1);
      isGiven = true;
      this.#step();
    };
  }

  /** Assigns free slots in turn, and ends processes for the remaining waiters. */
  #step(): void {
    for (let next = this.#next(); next !== undefined && this.#hasPlace(next.accountId); next = this.#next()) {
      this.#waiters.delete(next);
      this.#add(next.accountId, 1);
      next.give();
    }
    this.#makePlace();
    if (this.#waiters.size === 0) {
      clearInterval(this.#stepping ?? undefined);
      this.#stepping = null;
      this.#spared.clear();
    } else this.#stepping ??= setInterval(() => this.#step(), STEP_MS).unref();
  }

  /** The waiter whose turn it is. */
  #next(): Waiter | undefined {
    const waiting = [...this.#waiters];
    return (
      waiting.find(({ accountId }) => this.#takenBy(accountId) < this.#fairShare) ??
      waiting.find(({ accountId }) => this.#takenBy(accountId) < this.#share) ??
      waiting[0]
    );
  }

  #makePlace(): void {
    const next = this.#next();
    if (next === undefined) return;
    const isPoor = ({ accountId }: Waiter) => this.#takenBy(accountId) < this.#fairShare;
    const poor = [...this.#waiters].filter(isPoor);
    // An account at its share replaces one of its own processes, even while slots are free.
    if (this.#count >= this.#most || this.#takenBy(next.accountId) >= this.#share)
      while (this.#ending.size < Math.max(1, poor.length) && this.#endIdle(next));
    const late = poor.filter(({ isPatient }) => !isPatient);
    for (const waiter of late.slice(this.#ending.size)) if (!this.#endBusy(waiter)) return;
  }

  /** Ends the least recently used idle process that may be ended. False: none. */
  #endIdle({ accountId }: Waiter): boolean {
    const own = this.#takenBy(accountId);
    const mayEnd = (child: IdleChild) => {
      if (own < this.#fairShare || child.accountId === accountId) return true;
      if (own >= this.#share) return false;
      return this.#takenBy(child.accountId) > this.#fairShare || child.restsMs > REST_MS;
    };
    const [first] = this.#of((user) => user.idle())
      .filter(({ child, key }) => mayEnd(child) && !this.#spared.has(key))
      .sort((one, other) => one.child.rank - other.child.rank);
    if (first === undefined) return false;
    const { user, child, key } = first;
    this.#end(first, async () => {
      await user.endIdle(child.name);
      if (user.idle().some(({ name }) => name === child.name)) this.#spared.add(key);
    });
    return true;
  }

  /** Ends the longest-running statement of the account with the most slots. False: none. */
  #endBusy({ accountId }: Waiter): boolean {
    const own = this.#takenBy(accountId);
    const ending = [...this.#ending.values()];
    const slotsOf = (account: number) =>
      this.#takenBy(account) - ending.filter((each) => each === account).length;
    const [first] = this.#of((user) => user.busy())
      .filter(({ child }) => child.accountId !== accountId)
      // Taking a slot from an account with one more would only swap their roles.
      .filter(({ child }) => slotsOf(child.accountId) > (own === 0 ? 0 : own + 1))
      .sort(
        ({ child: one }, { child: other }) =>
          slotsOf(other.accountId) - slotsOf(one.accountId) || one.since - other.since,
      );
    if (first === undefined) return false;
    const why = `another account waited for one of the ${this.#most} slots for active databases, of which this account used ${this.#takenBy(first.child.accountId)}`;
    this.#end(first, () => first.user.endBusy(first.child.name, why));
    return true;
  }

  /** Processes that are not being ended. */
  #of<T extends { readonly name: string }>(children: (user: SlotUser) => readonly T[]): Found<T>[] {
    return this.#users
      .flatMap((user, index) =>
        children(user).map((child) => ({ user, child, key: `${index} ${child.name}` })),
      )
      .filter(({ key }) => !this.#ending.has(key));
  }

  #end({ key, child }: Found<{ readonly accountId: number }>, end: () => Promise<void>): void {
    this.#ending.set(key, child.accountId);
    void end()
      .catch(() => {})
      .finally(() => {
        this.#ending.delete(key);
        this.#step();
      });
  }

  #hasPlace(accountId: number): boolean {
    return this.#count < this.#most && this.#takenBy(accountId) < this.#share;
  }

  #takenBy(accountId: number): number {
    return this.#taken.get(accountId) ?? 0;
  }

  #add(accountId: number, more: number): void {
    this.#count += more;
    const taken = this.#takenBy(accountId) + more;
    if (taken === 0) this.#taken.delete(accountId);
    else this.#taken.set(accountId, taken);
  }

  #tooMany(accountId: number, waitedMs: number): AppError {
    const waited = `The statement was not run: it waited ${Math.round(waitedMs / 1000)} s for a slot`;
    const own = this.#takenBy(accountId);
    return own < this.#fairShare
      ? new AppError('engine_unavailable', `${waited}, and too many databases are active at the same time`, {
          hint: 'Retry in a moment; the operator can raise CLOUDLET_DATABASE_PROCESSES',
          retryAfterSeconds: RETRY_SECONDS,
        })
      : new AppError('engine_unavailable', `${waited}, and ${own} databases of this account are active`, {
          hint: 'Retry when one of your databases is idle',
          retryAfterSeconds: RETRY_SECONDS,
        });
  }
}

const RETRY_SECONDS = 5;

interface Found<T> {
  readonly user: SlotUser;
  readonly child: T;
  /** Unique. */
  readonly key: string;
}
