/** SQL of the catalogue: prices, plans, quotas. */
import type { Awaitable, Increment, Reads, Statement } from '../../metadata/metadata.ts';
import type { MeterName } from '../metering/meters.ts';

export interface PriceRow {
  readonly meter: MeterName;
  readonly variant: string;
  /** '' for all plans. */
  readonly plan: string;
  /** ms since 1970, a whole hour. */
  readonly effective_from: number;
  readonly price_nano: number | bigint;
}

export interface PlanRow {
  readonly name: string;
  readonly monthly_micro: number | bigint;
  /** JSON. */
  readonly quotas: string;
  /** 1: its quotas are derived from the size of the host. */
  readonly follows_host: number;
  readonly created_at: number;
}

/** An account that has not received the credits of the month. */
export interface DueRow {
  readonly account_id: number;
  readonly plan: string;
  readonly monthly_micro: number | bigint;
}

const PLAN = 'SELECT name, monthly_micro, quotas, follows_host, created_at FROM plans';

export interface QuotaRow {
  readonly plan: string;
  /** JSON of the plan's quotas; null: the plan does not exist. */
  readonly plan_quotas: string | null;
  /** JSON of the account's own quotas. */
  readonly quotas: string;
  readonly vms: number;
  readonly vcpus: number;
  readonly buckets: number;
  readonly databases: number;
  readonly storage_bytes: number | bigint;
  /** Memory of machines that run, or are about to start or stop, MiB. */
  readonly memory_mb: number;
  /** Disks of machines with their snapshots, GB. */
  readonly disk_gb: number;
  readonly admin_cap_micro: number | bigint | null;
}

/** Changes of an account's resource counts. */
export interface Counts {
  readonly vms: number;
  readonly vcpus: number;
  readonly buckets: number;
  readonly databases: number;
}

/** The largest 64-bit integer: no resource can exceed it. */
const UNLIMITED = 2n ** 63n - 1n;

const COLUMNS = {
  vms: 'vm_count',
  vcpus: 'vcpu_count',
  buckets: 'bucket_count',
  databases: 'database_count',
};
const COUNTED = ['vms', 'vcpus', 'buckets', 'databases'] as const;
const MOVE = `UPDATE billing_accounts SET ${COUNTED.map((name) => `${COLUMNS[name]} = ${COLUMNS[name]} + ?`)}
  WHERE account_id = ?`;
const CLAIM = `${MOVE} ${COUNTED.map((name) => `AND ${COLUMNS[name]} + ? <= ?`).join(' ')}`;

/** Memory of the account's machines that run, or are about to start or stop, MiB. */
const MEMORY = `SELECT coalesce(sum(memory_mb), 0) FROM vms WHERE vms.account_id = b.account_id
  AND (started_at IS NOT NULL OR state IN ('starting', 'stopping'))`;

/**
 * Disks of the account's machines at their full size, also of those that are being deleted, and their
 * snapshots, each as whole GB.
 */
const DISK = `SELECT coalesce(sum(disk_gb + (
    SELECT CAST(coalesce(sum((size_bytes + 1073741823) / 1073741824), 0) AS BIGINT) FROM vm_snapshots
    WHERE vm_snapshots.vm_id = vms.vm_id)), 0) FROM vms WHERE vms.account_id = b.account_id`;

export class CatalogStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** All prices, including replaced ones. */
  prices(): Awaitable<PriceRow[]> {
    return this.#reads.all('SELECT meter, variant, plan, effective_from, price_nano FROM prices');
  }

  /** Replaces a price for the same hour. */
  setPrice({ meter, variant, plan, effective_from, price_nano }: PriceRow): Statement {
    return {
      sql: `INSERT INTO prices (meter, variant, plan, effective_from, price_nano) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (meter, variant, plan, effective_from) DO UPDATE SET price_nano = excluded.price_nano`,
      params: [meter, variant, plan, effective_from, price_nano],
    };
  }

  plans(): Awaitable<PlanRow[]> {
    return this.#reads.all(`${PLAN} ORDER BY created_at, name`);
  }

  findPlan(name: string): Awaitable<PlanRow | undefined> {
    return this.#reads.get(`${PLAN} WHERE name = ?`, name);
  }

  /** Number of open accounts on the plan. */
  async countAccounts(name: string): Promise<number> {
    const sql = 'SELECT count(*) AS count FROM accounts WHERE plan = ? AND closed_at IS NULL';
    return (await this.#reads.get<{ count: number }>(sql, name))?.count ?? 0;
  }

  /** The plan of an open account. */
  async planOf(accountId: number): Promise<string | undefined> {
    const sql = 'SELECT plan FROM accounts WHERE id = ? AND closed_at IS NULL';
    return (await this.#reads.get<{ plan: string }>(sql, accountId))?.plan;
  }

  /** Rejected as `unique` if a plan with that name exists. */
  insertPlan({ name, monthly_micro, quotas, created_at }: Omit<PlanRow, 'follows_host'>): Statement {
    return {
      sql: 'INSERT INTO plans (name, monthly_micro, quotas, created_at) VALUES (?, ?, ?, ?)',
      params: [name, monthly_micro, quotas, created_at],
    };
  }

  /** Changes no row that was changed since `before` was read. */
  updatePlan(before: PlanRow, after: Pick<PlanRow, 'monthly_micro' | 'quotas' | 'follows_host'>): Statement {
    return {
      sql: `UPDATE plans SET monthly_micro = ?, quotas = ?, follows_host = ?
            WHERE name = ? AND monthly_micro = ? AND quotas = ? AND follows_host = ?`,
      params: [
        ...[after.monthly_micro, after.quotas, after.follows_host],
        ...[before.name, before.monthly_micro, before.quotas, before.follows_host],
      ],
    };
  }

  /** Changes no row while an open account is on the plan, or if it does not exist. */
  deletePlan(name: string): Statement {
    return {
      sql: `DELETE FROM plans WHERE name = ?
            AND NOT EXISTS (SELECT 1 FROM accounts WHERE plan = ? AND closed_at IS NULL)`,
      params: [name, name],
    };
  }

  /** Changes no row if the plan does not exist or the account is closed. */
  assignPlan(accountId: number, name: string): Statement {
    return {
      sql: `UPDATE accounts SET plan = ? WHERE id = ? AND closed_at IS NULL
            AND EXISTS (SELECT 1 FROM plans WHERE name = ?)`,
      params: [name, accountId, name],
    };
  }

  /**
   * Open accounts, after id `after`, whose plan grants credits and that have not received those of `month`
   * (YYYY-MM).
   */
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

  /** The highest id any account ever had; 0 without accounts. */
  async highestAccountId(): Promise<number> {
    const row = await this.#reads.get<{ id: number | null }>('SELECT max(id) AS id FROM accounts');
    return row?.id ?? 0;
  }

  findQuotas(accountId: number): Awaitable<QuotaRow | undefined> {
    return this.#reads.get(
      `SELECT plan, p.quotas AS plan_quotas, b.quotas, vm_count AS vms, vcpu_count AS vcpus,
         bucket_count AS buckets, database_count AS databases, storage_bytes, (${MEMORY}) AS memory_mb,
         CAST((${DISK}) AS BIGINT) AS disk_gb, admin_cap_micro
       FROM billing_accounts b JOIN accounts a ON a.id = b.account_id LEFT JOIN plans p ON p.name = a.plan
       WHERE account_id = ?`,
      accountId,
    );
  }

  /** Whether any plan or account has a limit of bytes. */
  async limitsStorage(): Promise<boolean> {
    const mentions = `quotas LIKE '%"storage_bytes"%'`;
    const row = await this.#reads.get(
      `SELECT 1 FROM plans WHERE ${mentions} UNION ALL SELECT 1 FROM billing_accounts WHERE ${mentions} LIMIT 1`,
    );
    return row !== undefined;
  }

  /** Subtracts the counts of a released resource. */
  release(accountId: number, counts: Counts): Statement {
    return { sql: MOVE, params: [...COUNTED.map((name) => -counts[name]), accountId], expectChanges: 1 };
  }

  /** Adds the counts of a claim. Refuses if a count would exceed its limit; null: unlimited. */
  claim(
    accountId: number,
    counts: Counts,
    limits: Readonly<Partial<Record<string, number | null>>>,
  ): Statement {
    const fits = COUNTED.flatMap((name) => {
      // A quota that is not claimed may be exceeded already, because its limit was lowered.
      const limit = counts[name] > 0 ? limits[name] : null;
      return [counts[name], limit ?? UNLIMITED];
    });
    const params = [...COUNTED.map((name) => counts[name]), accountId, ...fits];
    return { sql: CLAIM, params, expectChanges: 1 };
  }

  /** Refuses if the account now stores more bytes than the limit, including those this commit added. */
  expectStorage(accountId: number, limit: number): Increment {
    return {
      sql: 'UPDATE accounts SET id = id WHERE id = ? AND storage_bytes <= ?',
      params: [accountId, limit],
      expectChanges: 1,
      amounts: [],
    };
  }

  /**
   * Refuses if the account's running machines have more memory than the limit, including those this commit
   * starts.
   */
  expectMemory(accountId: number, limitMb: number): Statement {
    return {
      sql: `UPDATE billing_accounts AS b SET account_id = account_id WHERE account_id = ? AND (${MEMORY}) <= ?`,
      params: [accountId, limitMb],
      expectChanges: 1,
    };
  }

  /** Refuses if the account's machines have more disk than the limit, including what this commit stores. */
  expectDisk(accountId: number, limitGb: number): Statement {
    return {
      sql: `UPDATE billing_accounts AS b SET account_id = account_id WHERE account_id = ? AND (${DISK}) <= ?`,
      params: [accountId, limitGb],
      expectChanges: 1,
    };
  }

  /** JSON of the account's own limits. */
  setQuotas(accountId: number, quotas: string): Statement {
    const sql = 'UPDATE billing_accounts SET quotas = ? WHERE account_id = ?';
    return { sql, params: [quotas, accountId] };
  }
}
