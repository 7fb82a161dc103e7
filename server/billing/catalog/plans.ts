/** Plans: prices, quotas, and monthly credits. */
import { accountNotFound } from '../../accounts/account-errors.ts';
import { toCredits, toMicro } from '../../accounts/credits.ts';
import type { Ages } from '../../metadata/ages.ts';
import type { Bus } from '../../metadata/bus.ts';
import { BACKGROUND, type Change, type Changes, type Recorder, turnAt } from '../../metadata/change.ts';
import type { Statement } from '../../metadata/metadata.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { plural } from '../../platform/plural.ts';
import { transferStatements } from '../ledger/ledger.ts';
import type { Rating } from '../metering/rating.ts';
import type { AccountQuotas, AccountTerms, NewPlan, Plan, PlanChange, TermsChange } from '../schema.ts';
import type { CatalogStore, DueRow, PlanRow } from './catalog-store.ts';
import { type Limits, QUOTAS, type Quotas } from './quotas.ts';

/** The plan of every new account. */
const FIRST_PLAN = 'free';

export interface PlansDeps {
  readonly changes: Changes;
  readonly clock: Clock;
  readonly store: CatalogStore;
  readonly quotas: Quotas;
  readonly rating: Rating;
  readonly monthly: Monthly;
}

export class Plans {
  readonly #deps: PlansDeps;

  constructor(deps: PlansDeps) {
    this.#deps = deps;
  }

  /** Oldest first. */
  async list(): Promise<Plan[]> {
    const rows = await this.#deps.store.plans();
    return Promise.all(rows.map(async (row) => present(row, await this.#deps.store.countAccounts(row.name))));
  }

  /** Throws `invalid_request`, `plan_exists`. */
  async create(call: Recorder, input: NewPlan): Promise<Plan> {
    const { changes, store, clock } = this.#deps;
    const row = {
      name: input.name,
      monthly_micro: toMicro(input.monthly_credits ?? 0, 'monthly_credits'),
      quotas: JSON.stringify(known(input.quotas ?? {})),
      created_at: clock.now(),
    };
    return changes.run(call, (change) => {
      const exists = () => new AppError('plan_exists', `A plan named ${input.name} already exists`);
      change.add(store.insertPlan(row), exists);
      change.forgets({ kind: 'quota', id: '' });
      return present({ ...row, follows_host: 0 }, 0);
    });
  }

  /**
   * Lowered limits remove nothing; changed monthly credits are granted at once to accounts that
   * have received none this month. Throws `invalid_request`, `plan_not_found`.
   */
  change(call: Recorder, name: string, input: PlanChange): Promise<Plan> {
    const { changes, store } = this.#deps;
    const { monthly_credits: credits, quotas } = input;
    return changes.run(call, async (change) => {
      const before = await this.#find(name);
      const after = {
        ...before,
        monthly_micro: credits === undefined ? before.monthly_micro : toMicro(credits, 'monthly_credits'),
        quotas: quotas === undefined ? before.quotas : JSON.stringify(known(quotas)),
      };
      // A form that sends the current quotas back unchanged must not detach them from the host's
      // size.
      const follows_host = after.quotas === before.quotas ? before.follows_host : 0;
      change.expect(store.updatePlan(before, { ...after, follows_host }), 'retry');
      change.forgets({ kind: 'plan', id: '' });
      change.forgets({ kind: 'quota', id: '' });
      return present({ ...after, follows_host }, await store.countAccounts(name));
    });
  }

  /** Sets the limits of plans that follow the size of the host; `limits` are those of its present size. */
  async followHost(limits: Limits): Promise<void> {
    const { changes, store } = this.#deps;
    const wanted = JSON.stringify(known(limits));
    const others = (await store.plans()).filter((row) => row.follows_host === 1 && row.quotas !== wanted);
    if (others.length === 0) return;
    await changes.run(BACKGROUND, (change) => {
      change.addAll(others.map((row) => store.updatePlan(row, { ...row, quotas: wanted })));
      change.forgets({ kind: 'quota', id: '' });
    });
  }

  /** Throws `plan_not_found`, `plan_in_use`. */
  async remove(call: Recorder, name: string): Promise<Plan> {
    const { changes, store } = this.#deps;
    if (name === FIRST_PLAN) {
      throw new AppError(
        'plan_in_use',
        `The plan ${name} is the default for new accounts and cannot be deleted`,
      );
    }
    return changes.run(call, async (change) => {
      const row = await this.#find(name);
      change.add(turnAt('plans', name));
      change.expect(store.deletePlan(name), async () => {
        const count = await store.countAccounts(name);
        if (count === 0) return planNotFound(name);
        return new AppError(
          'plan_in_use',
          `The plan ${name} has ${plural(count, 'account')}: assign another plan to each first`,
        );
      });
      return present(row, 0);
    });
  }

  /**
   * Assigns an account another plan, with the credits of this month, or its own limits. Earlier
   * usage is charged by the previous plan. `beside` adds other changes to the commit, such as a spend cap.
   * Throws `account_not_found`, `plan_not_found`.
   */
  async setTerms(
    call: Recorder,
    accountId: number,
    input: Pick<TermsChange, 'plan' | 'quotas' | 'spend_cap'> & {
      readonly beside?: (change: Change) => Promise<void>;
    },
  ): Promise<AccountTerms> {
    const { changes, store, quotas, rating, monthly } = this.#deps;
    if ((await store.planOf(accountId)) === undefined) throw accountNotFound();
    if (input.plan !== undefined) {
      await this.#find(input.plan);
      await rating.rateUsage(accountId);
    }
    const response = await changes.run(call, async (change) => {
      const plan = input.plan === undefined ? undefined : await this.#find(input.plan);
      const own = input.quotas && known(input.quotas);
      const isOpen = (await store.planOf(accountId)) !== undefined;
      const terms = isOpen
        ? await quotas.termsOf(accountId, { plan, own, spendCap: input.spend_cap })
        : undefined;
      if (terms === undefined) throw accountNotFound();
      // The plan was deleted, or the account closed, since they were read.
      if (plan !== undefined) {
        change.add(turnAt('plans', plan.name));
        change.expect(store.assignPlan(accountId, plan.name), 'retry');
      }
      if (own !== undefined) change.expect(quotas.setOwn(accountId, own), 'retry');
      await input.beside?.(change);
      change.forgets({ kind: 'quota', id: '' });
      return { id: accountId, ...terms };
    });
    // After a failure, the next tick grants the credits.
    if (input.plan !== undefined) await monthly.giveTo(accountId).catch(() => monthly.changed());
    return response;
  }

  /** Throws `account_not_found`. */
  async quotasOf(accountId: number): Promise<AccountQuotas> {
    const found = await this.#deps.quotas.termsOf(accountId);
    if (found === undefined) throw accountNotFound();
    const { plan, quotas } = found;
    return { plan, quotas };
  }

  async #find(name: string): Promise<PlanRow> {
    const row = await this.#deps.store.findPlan(name);
    if (row === undefined) throw planNotFound(name);
    return row;
  }
}

function planNotFound(name: string): AppError {
  return new AppError('plan_not_found', `There is no plan named ${name}`);
}

/** Only known quotas: unknown members are never stored. */
function known(limits: Limits): Limits {
  return Object.fromEntries(
    QUOTAS.filter((quota) => limits[quota] !== undefined).map((quota) => [quota, limits[quota]]),
  ) as Limits;
}

function present(row: PlanRow, accountCount: number): Plan {
  return {
    name: row.name,
    monthly_credits: toCredits(row.monthly_micro),
    quotas: JSON.parse(row.quotas) as Plan['quotas'],
    follows_host: row.follows_host === 1,
    account_count: accountCount,
    created_at: formatTime(row.created_at),
  };
}

export interface MonthlyDeps {
  readonly changes: Changes;
  readonly clock: Clock;
  readonly store: CatalogStore;
  readonly bus: Pick<Bus, 'onForget'>;
  readonly ages: Ages;
  /** Called after the commit. */
  readonly creditsAdded: (accountId: number) => void;
}

const PAGE = 200;
/** Another node may have changed a plan without its message arriving: all accounts are checked again. */
const CHECKED_AGAIN_MS = 10 * 60_000;

const NOTHING_DONE = { month: '', upTo: 0, at: 0 };

export class Monthly {
  readonly #deps: MonthlyDeps;
  /** Accounts up to this id have the credits of this month: only newer accounts need to be checked. */
  #done = NOTHING_DONE;

  constructor(deps: MonthlyDeps) {
    this.#deps = deps;
    deps.bus.onForget('plan', () => this.changed());
  }

  /** Grants all due plan credits. Returns the number of accounts that got credits. */
  async tick(): Promise<number> {
    const { store, ages, clock } = this.#deps;
    const month = this.#month();
    const at = clock.monotonic();
    const isOld = ages.isShared && at - this.#done.at >= CHECKED_AGAIN_MS;
    if (this.#done.month !== month || isOld) this.#done = { month, upTo: 0, at };
    const started = this.#done;
    let given = 0;
    const highest = await store.highestAccountId();
    for (let after = started.upTo; after < highest; ) {
      const rows = await store.due(month, after, PAGE);
      // Run in parallel, so that they share commits.
      const outcomes = await Promise.all(rows.map((row) => this.#give(row, month)));
      given += outcomes.filter(Boolean).length;
      after = rows.length < PAGE ? highest : (rows.at(-1)?.account_id ?? highest);
    }
    // Skipped if a plan was changed concurrently.
    if (this.#done === started) this.#done = { ...started, upTo: highest };
    return given;
  }

  /** Called when a plan's credits or an account's plan changed: the next tick checks all accounts. */
  changed(): void {
    this.#done = { ...NOTHING_DONE };
  }

  /** Grants the due plan credits to one account. */
  async giveTo(accountId: number): Promise<void> {
    const month = this.#month();
    const [row] = await this.#deps.store.due(month, accountId - 1, 1);
    if (row?.account_id === accountId) await this.#give(row, month);
  }

  async #give(row: DueRow, month: string): Promise<boolean> {
    let isGiven = false;
    await this.#deps.changes.run(BACKGROUND, (change) => {
      // Another tick granted them.
      change.addAll(this.#grant(row, month), 'skip');
      change.after(() => {
        isGiven = true;
        this.#deps.creditsAdded(row.account_id);
      });
    });
    return isGiven;
  }

  #grant({ account_id, plan, monthly_micro }: DueRow, month: string): Statement[] {
    return transferStatements({
      id: `plan-${plan}-${account_id}-${month}`,
      debit: 'system:grants',
      credit: `account:${account_id}`,
      amountMicro: BigInt(monthly_micro),
      code: 'plan_grant',
      reference: `plan ${plan}, ${month}`,
      at: this.#deps.clock.now(),
    });
  }

  #month(): string {
    return new Date(this.#deps.clock.now()).toISOString().slice(0, 7);
  }
}

/** The host figures from which a plan's limits are derived: no account can use the whole host. */
export interface HostSize {
  /** Size of the disk with the data directory. */
  readonly diskBytes: number;
  /** Memory for all running machines together, MiB. */
  readonly memoryMb: number;
  /** The largest machine that this host can start, MiB. */
  readonly largestMb: number;
  readonly cores: number;
}

const GIB = 2 ** 30;
const GIB_MB = 1024;
/** Limits of rows and small files, which cost any host almost nothing. */
const SMALL_THINGS = { buckets: 1000, databases: 50 };
/** Minimum for the tour and an ordinary test suite, even on the smallest host. */
const LEAST = { vms: 25, vcpus: 128, memoryMb: 4 * GIB_MB, diskGb: 3 * 1024, storageBytes: GIB };

/**
 * Half of memory and disk, and at least the largest machine this host can start; a small host gives more than
 * half.
 */
export function limitsOfHost({ diskBytes, memoryMb, largestMb, cores }: HostSize): Limits {
  const leastMb = Math.min(memoryMb, LEAST.memoryMb);
  return {
    // A stopped machine costs little: twice as many machines of the smallest type as can run.
    vms: Math.max(LEAST.vms, 2 * Math.floor(memoryMb / GIB_MB)),
    vcpus: Math.max(LEAST.vcpus, 16 * cores),
    memory_mb: Math.max(wholeOf(memoryMb / 2, GIB_MB), largestMb, leastMb),
    // Disks take space only as they are written; the smallest limit allows a machine of each type and 25
    // of the smallest type.
    disk_gb: Math.max(Math.floor(diskBytes / 2 / GIB), LEAST.diskGb),
    storage_bytes: Math.max(wholeOf(diskBytes / 2, GIB), LEAST.storageBytes),
    ...SMALL_THINGS,
  };
}

function wholeOf(amount: number, unit: number): number {
  return Math.floor(amount / unit) * unit;
}
