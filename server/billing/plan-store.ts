/** SQL of plans, of who has which, and of what they give each month. */
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';

export interface PlanRow {
  readonly name: string;
  readonly monthly_micro: number | bigint;
  /** JSON. */
  readonly quotas: string;
  readonly created_at: number;
}

/** Somebody who has not got the credits of the month. */
export interface DueRow {
  readonly account_id: number;
  readonly plan: string;
  readonly monthly_micro: number | bigint;
}

const PLAN = 'SELECT name, monthly_micro, quotas, created_at FROM plans';

export class PlanStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  list(): Awaitable<PlanRow[]> {
    return this.#reads.all(`${PLAN} ORDER BY created_at, name`);
  }

  find(name: string): Awaitable<PlanRow | undefined> {
    return this.#reads.get(`${PLAN} WHERE name = ?`, name);
  }

  /** How many open accounts have it. */
  async countAccounts(name: string): Promise<number> {
    const sql = 'SELECT count(*) AS count FROM accounts WHERE plan = ? AND closed_at IS NULL';
    return (await this.#reads.get<{ count: number }>(sql, name))?.count ?? 0;
  }

  /** Of an open account. */
  async planOf(accountId: number): Promise<string | undefined> {
    const sql = 'SELECT plan FROM accounts WHERE id = ? AND closed_at IS NULL';
    return (await this.#reads.get<{ plan: string }>(sql, accountId))?.plan;
  }

  /** Rejected as `unique` when there is one of that name. */
  insert({ name, monthly_micro, quotas, created_at }: PlanRow): Statement {
    return {
      sql: 'INSERT INTO plans (name, monthly_micro, quotas, created_at) VALUES (?, ?, ?, ?)',
      params: [name, monthly_micro, quotas, created_at],
    };
  }

  /** Changes no row that was changed since `before` was read. */
  update(before: PlanRow, after: Pick<PlanRow, 'monthly_micro' | 'quotas'>): Statement {
    return {
      sql: 'UPDATE plans SET monthly_micro = ?, quotas = ? WHERE name = ? AND monthly_micro = ? AND quotas = ?',
      params: [after.monthly_micro, after.quotas, before.name, before.monthly_micro, before.quotas],
    };
  }

  /** Changes no row while an open account has it, and when it is gone. */
  delete(name: string): Statement {
    return {
      sql: `DELETE FROM plans WHERE name = ?
            AND NOT EXISTS (SELECT 1 FROM accounts WHERE plan = ? AND closed_at IS NULL)`,
      params: [name, name],
    };
  }

  /** Changes no row when there is no such plan, or the account is closed. */
  assign(accountId: number, name: string): Statement {
    return {
      sql: `UPDATE accounts SET plan = ? WHERE id = ? AND closed_at IS NULL
            AND EXISTS (SELECT 1 FROM plans WHERE name = ?)`,
      params: [name, accountId, name],
    };
  }

  /** Open accounts whose plan gives credits, and that have none of `month` (YYYY-MM), after id `after`. */
  due(month: string, after: number, limit: number): Awaitable<DueRow[]> {
    return this.#reads.all(
      `SELECT a.id AS account_id, plan, monthly_micro FROM accounts a JOIN plans p ON p.name = a.plan
       WHERE a.id > ? AND monthly_micro > 0 AND closed_at IS NULL AND NOT EXISTS (
         SELECT 1 FROM ledger_transfers t WHERE t.id = 'plan-' || plan || '-' || a.id || '-' || ?)
       ORDER BY a.id LIMIT ?`,
      after,
      month,
      limit,
    );
  }

  /** Of all accounts ever; 0 without any. */
  async highestAccountId(): Promise<number> {
    const row = await this.#reads.get<{ id: number | null }>('SELECT max(id) AS id FROM accounts');
    return row?.id ?? 0;
  }
}
