/**
 * Checks each minute that billing is consistent: an unbroken chain, cached figures equal to the
 * ledger, usage equal to charges, every running machine metered. While a problem exists, an alarm
 * is raised and no charged resource can start.
 */
import { type Clock, formatTime, formatTimeOrNull } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { type LedgerHead, LedgerWalk } from './checks-walk.ts';
import type { LedgerStore } from './ledger-store.ts';

export interface ChecksDeps {
  readonly store: LedgerStore;
  readonly clock: Clock;
  readonly alarms: { raise(code: string, detail: string, fix: string): void; clear(code: string): void };
  /** Charges an account for its usage up to now. */
  readonly rateUsage: (accountId: number) => Promise<void>;
  /** Called with the error of a walk that failed, and of an account that could not be charged. */
  readonly onError: (error: unknown) => void;
}

/** The full verification, as shown to an operator. */
export interface Verification {
  readonly running: boolean;
  readonly started_at: string | null;
  readonly seconds: number | null;
  readonly checked: number;
  readonly head: { readonly seq: number; readonly hash: string };
  readonly problem: string | null;
}

export const BILLING_ALARM = 'billing_inconsistent';
const FIX =
  'Copy the data directory, then run `cloudlet ledger verify`, which names the transfer. An earlier recovery point has an intact ledger';
const SETTLED_WITHIN_MS = 2 * 3_600_000;
/** Time per minute for comparing the usage of accounts, round-robin. */
const TURN_MS = 20;
const PAGE_ACCOUNTS = 100;

export class Checks {
  readonly #deps: ChecksDeps;
  /** The last walk without a problem; continued each minute. */
  #walk: LedgerWalk | null = null;
  /** The running walk, or the last one. */
  #latest: LedgerWalk;
  #running: Promise<void> | null = null;
  readonly #closing = new AbortController();
  #startedAt: number | null = null;
  #seconds: number | null = null;
  #walkProblem: string | null = null;
  #anchorProblem: string | null = null;
  #minuteProblem: string | null = null;
  #nextAccount = 0;

  constructor(deps: ChecksDeps) {
    this.#deps = deps;
    this.#latest = this.#newWalk();
  }

  /** Throws `billing_inconsistent` while a problem exists. Called before every charged operation. */
  assertSound(): void {
    if (this.#problem === null) return;
    throw new AppError('billing_inconsistent', 'New charges are blocked until the ledger is verified', {
      hint: 'Reading, stopping and deleting still work. The system status shows the operator the cause',
      retryAfterSeconds: 60,
    });
  }

  get #problem(): string | null {
    return this.#walkProblem ?? this.#minuteProblem;
  }

  /**
   * One check, each minute. Checks that do not need the full walk run while the first walk is in progress.
   */
  async check(): Promise<void> {
    const sound = this.#walk === null ? null : await this.#checkLedger(this.#walk);
    this.#minuteProblem = sound ?? (await this.#latest.holdsProblem()) ?? (await this.#meterProblem());
    this.#tell();
  }

  /**
   * Starts a walk of the whole ledger. Throws `job_running`. If it finds no problem, it clears an alarm that
   * an earlier walk raised. `anchor` as in Ledger.verify(): a wrong one is reported and blocks nothing,
   * because the recorded head may be the wrong one.
   */
  startVerification(anchor?: LedgerHead): void {
    if (this.#running !== null) throw new AppError('job_running', 'The ledger is already being verified');
    this.#running = this.#verify(anchor)
      .catch((error) => this.#deps.onError(error))
      .finally(() => {
        this.#running = null;
      });
  }

  /** Resolves when no walk is running. */
  async untilIdle(): Promise<void> {
    await this.#running;
  }

  /** Aborts a running walk. */
  async close(): Promise<void> {
    this.#closing.abort(new AppError('shutting_down', 'Cloudlet is being stopped'));
    await this.#running;
  }

  #newWalk(): LedgerWalk {
    return new LedgerWalk({ store: this.#deps.store, signal: this.#closing.signal });
  }

  verification(): Verification {
    const { seq, hash } = this.#latest.head;
    return {
      running: this.#running !== null,
      started_at: formatTimeOrNull(this.#startedAt),
      seconds: this.#seconds,
      checked: Number(seq),
      head: { seq: Number(seq), hash },
      problem: this.#running === null ? (this.#walkProblem ?? this.#anchorProblem) : null,
    };
  }

  async #verify(anchor: LedgerHead | undefined): Promise<void> {
    const { clock } = this.#deps;
    const walk = this.#newWalk();
    this.#latest = walk;
    this.#startedAt = clock.now();
    this.#seconds = null;
    const began = clock.monotonic();
    const problem = await walk.wholeProblem();
    this.#anchorProblem = anchor === undefined || problem !== null ? null : await walk.anchorProblem(anchor);
    this.#seconds = (clock.monotonic() - began) / 1000;
    this.#walkProblem = problem;
    if (problem === null) this.#walk = walk;
    this.#tell();
  }

  async #checkLedger(walk: LedgerWalk): Promise<string | null> {
    return (await walk.advance()) ?? (await walk.balanceProblem()) ?? (await this.#usageProblem(walk));
  }

  /** Checks accounts round-robin, within the time limit of one check. */
  async #usageProblem(walk: LedgerWalk): Promise<string | null> {
    const { store, clock } = this.#deps;
    const until = clock.monotonic() + TURN_MS;
    for (;;) {
      const ids = await store.accountsAfter(this.#nextAccount, PAGE_ACCOUNTS);
      for (const id of ids) {
        const problem = await walk.usageProblem(id);
        if (problem !== null) return problem;
        this.#nextAccount = id;
        if (clock.monotonic() >= until) return null;
      }
      if (ids.length < PAGE_ACCOUNTS) {
        this.#nextAccount = 0;
        return null;
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #meterProblem(): Promise<string | null> {
    const { store, clock, rateUsage, onError } = this.#deps;
    const wrong = await store.mismetered();
    if (wrong !== undefined) {
      return wrong.runs === 1
        ? `machine ${wrong.vm_id} is running but not metered`
        : `machine ${wrong.vm_id} is metered but not running`;
    }
    const before = clock.now() - SETTLED_WITHIN_MS;
    // After a long stop, or a jump of the wall clock, unrated usage is not a problem yet.
    for (const id of await store.unratedSince(before)) {
      // An account that cannot be charged is reported below and does not block others.
      await rateUsage(id).catch((error: unknown) => onError(error));
    }
    const [late] = await store.unratedSince(before);
    return late === undefined ? null : `account ${late} has not been charged since ${formatTime(before)}`;
  }

  #tell(): void {
    const { alarms } = this.#deps;
    const problem = this.#problem;
    if (problem === null) alarms.clear(BILLING_ALARM);
    else {
      const detail = `The ledger is inconsistent, and new charges are blocked: ${problem}`;
      alarms.raise(BILLING_ALARM, detail, FIX);
    }
  }
}
