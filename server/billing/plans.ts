/** Plans: what accounts may have, and what they are given each month. Their prices are in the price list. */
import { accountNotFound } from '../accounts/accounts.ts';
import { toCredits, toMicro } from '../accounts/credits.ts';
import { CommitRejected, type Metadata } from '../metadata/metadata.ts';
import type { Receipt } from '../metadata/receipt.ts';
import { type Clock, formatTime } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import type { Monthly } from './monthly.ts';
import type { AccountQuotas, AccountTerms, NewPlan, Plan, PlanChange, TermsChange } from './plan-schema.ts';
import type { PlanRow, PlanStore } from './plan-store.ts';
import { type Limits, QUOTAS, type Quotas } from './quotas.ts';
import type { Settlement } from './settlement.ts';

/** Every new account has it. */
const FIRST_PLAN = 'free';

export interface PlansDeps {
  readonly metadata: Metadata;
  readonly clock: Clock;
  readonly store: PlanStore;
  readonly quotas: Quotas;
  readonly settlement: Settlement;
  readonly monthly: Monthly;
}

export class Plans {
  readonly #deps: PlansDeps;

  constructor(deps: PlansDeps) {
    this.#deps = deps;
  }

  /** Oldest first. */
  async list(): Promise<Plan[]> {
    const rows = await this.#deps.store.list();
    return Promise.all(rows.map(async (row) => present(row, await this.#deps.store.countAccounts(row.name))));
  }

  /** Throws `invalid_request`, `plan_exists`. */
  async create(input: NewPlan, receipt: Receipt): Promise<Plan> {
    const { metadata, store, clock } = this.#deps;
    const row = {
      name: input.name,
      monthly_micro: toMicro(input.monthly_credits ?? 0, 'monthly_credits'),
      quotas: JSON.stringify(known(input.quotas ?? {})),
      created_at: clock.now(),
    };
    const plan = present(row, 0);
    try {
      await metadata.commit([store.insert(row), ...receipt(plan)]);
      this.#deps.quotas.limitsChanged();
    } catch (error) {
      if (!(error instanceof CommitRejected) || error.index !== 0) throw error;
      throw new AppError('plan_exists', `There is a plan ${input.name} already`);
    }
    return plan;
  }

  /**
   * Lowered limits take nothing away; changed monthly credits are given at once to who has none of this
   * month. Throws `invalid_request`, `plan_not_found`, `write_conflict`.
   */
  async change(name: string, input: PlanChange): Promise<Plan> {
    const { metadata, store, monthly } = this.#deps;
    const before = await this.#find(name);
    const { monthly_credits: credits, quotas } = input;
    const after = {
      ...before,
      monthly_micro: credits === undefined ? before.monthly_micro : toMicro(credits, 'monthly_credits'),
      quotas: quotas === undefined ? before.quotas : JSON.stringify(known(quotas)),
    };
    try {
      await metadata.commit([store.update(before, after)]);
    } catch (error) {
      if (!(error instanceof CommitRejected)) throw error;
      throw new AppError('write_conflict', 'The plan was changed meanwhile; try again', { cause: error });
    }
    monthly.changed();
    this.#deps.quotas.limitsChanged();
    return present(after, await store.countAccounts(name));
  }

  /** Throws `plan_not_found`, `plan_in_use`. */
  async remove(name: string): Promise<Plan> {
    const { metadata, store } = this.#deps;
    const row = await this.#find(name);
    if (name === FIRST_PLAN) {
      throw new AppError('plan_in_use', `New accounts get the plan ${name}: it cannot be deleted`);
    }
    try {
      await metadata.commit([store.delete(name)]);
    } catch (error) {
      if (!(error instanceof CommitRejected)) throw error;
      const count = await store.countAccounts(name);
      if (count === 0) throw planNotFound(name);
      throw new AppError('plan_in_use', `${count} accounts have the plan ${name}: give them another first`);
    }
    return present(row, 0);
  }

  /**
   * Gives an account another plan, with the credits of this month, or limits of its own. What it used so far
   * is charged by the plan of before. Throws `account_not_found`, `plan_not_found`.
   */
  async setTerms(accountId: number, input: TermsChange): Promise<AccountTerms> {
    const { metadata, store, quotas, settlement, monthly } = this.#deps;
    const plan = input.plan ?? (await store.planOf(accountId));
    if (plan === undefined) throw accountNotFound();
    if (input.plan !== undefined) {
      await this.#find(input.plan);
      await settlement.settle(accountId);
    }
    const own = input.quotas === undefined ? await quotas.ownOf(accountId) : known(input.quotas);
    const statements = [
      ...(input.plan === undefined ? [] : [store.assign(accountId, input.plan)]),
      ...(input.quotas === undefined ? [] : [quotas.setOwn(accountId, own)]),
    ];
    try {
      if (statements.length > 0) await metadata.commit(statements);
    } catch (error) {
      if (!(error instanceof CommitRejected)) throw error;
      if ((await store.planOf(accountId)) === undefined) throw accountNotFound();
      throw planNotFound(plan);
    }
    quotas.limitsChanged();
    // Should it fail, the next tick gives it.
    if (input.plan !== undefined) await monthly.giveTo(accountId).catch(() => monthly.changed());
    return { id: accountId, own_quotas: own, ...(await this.quotasOf(accountId)) };
  }

  /** Throws `account_not_found`. */
  async quotasOf(accountId: number): Promise<AccountQuotas> {
    const found = await this.#deps.quotas.of(accountId);
    if (found === undefined) throw accountNotFound();
    return found;
  }

  async #find(name: string): Promise<PlanRow> {
    const row = await this.#deps.store.find(name);
    if (row === undefined) throw planNotFound(name);
    return row;
  }
}

function planNotFound(name: string): AppError {
  return new AppError('plan_not_found', `There is no plan ${name}`);
}

/** Only the quotas there are: members unknown to us are never stored. */
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
    account_count: accountCount,
    created_at: formatTime(row.created_at),
  };
}
