/**
 * The credits that a plan gives each month, once for an account and a calendar month (UTC): the transfer's
 * id says which, and the ledger takes no id twice.
 */

import { type Changes, UNASKED } from '../metadata/change.ts';
import type { Statement } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { transferStatements } from './ledger.ts';
import type { DueRow, PlanStore } from './plan-store.ts';

export interface MonthlyDeps {
  readonly changes: Changes;
  readonly clock: Clock;
  readonly store: PlanStore;
  /** Told after the commit. */
  readonly creditsAdded: (accountId: number) => void;
}

const PAGE = 200;

export class Monthly {
  readonly #deps: MonthlyDeps;
  /** Everybody up to this id has the credits of this month: only new accounts have to be looked at. */
  #done = { month: '', upTo: 0 };

  constructor(deps: MonthlyDeps) {
    this.#deps = deps;
  }

  /** Gives everybody what is due. Returns to how many. */
  async tick(): Promise<number> {
    const { store } = this.#deps;
    const month = this.#month();
    if (this.#done.month !== month) this.#done = { month, upTo: 0 };
    const started = this.#done;
    let given = 0;
    const highest = await store.highestAccountId();
    for (let after = started.upTo; after < highest; ) {
      const rows = await store.due(month, after, PAGE);
      // Together, so that they share commits.
      const outcomes = await Promise.all(rows.map((row) => this.#give(row, month)));
      given += outcomes.filter(Boolean).length;
      after = rows.length < PAGE ? highest : (rows.at(-1)?.account_id ?? highest);
    }
    // Unless a plan was changed meanwhile.
    if (this.#done === started) this.#done = { month, upTo: highest };
    return given;
  }

  /** What a plan gives, or who has it, was changed: the next tick looks at everybody. */
  changed(): void {
    this.#done = { month: '', upTo: 0 };
  }

  /** Gives one account what is due to it. */
  async giveTo(accountId: number): Promise<void> {
    const month = this.#month();
    const [row] = await this.#deps.store.due(month, accountId - 1, 1);
    if (row?.account_id === accountId) await this.#give(row, month);
  }

  async #give(row: DueRow, month: string): Promise<boolean> {
    let isGiven = false;
    await this.#deps.changes.run(UNASKED, (change) => {
      // Somebody else gave it.
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
