/** SQL of quotas: what an account has, what it may have, and claims that a commit makes on them. */
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';

export interface QuotaRow {
  readonly plan: string;
  /** JSON, of the plan; null: there is no such plan. */
  readonly plan_quotas: string | null;
  /** JSON, of the account. */
  readonly quotas: string;
  readonly vms: number;
  readonly vcpus: number;
  readonly buckets: number;
  readonly databases: number;
  readonly storage_bytes: number | bigint;
}

/** Counted in billing_accounts. */
export interface Counted {
  readonly accountId: number;
  /** More of each, or fewer. */
  readonly vms: number;
  readonly vcpus: number;
  readonly buckets: number;
  readonly databases: number;
}

/** More than 64 bits of anything cannot be used. */
const UNLIMITED = '9223372036854775807';

/** The limit that holds for the account in `accountId`: its own, else its plan's, else none. */
const limit = (quota: string, accountId: string) => `coalesce((
  SELECT CASE WHEN json_type(b.quotas, '$.${quota}') IS NOT NULL THEN json_extract(b.quotas, '$.${quota}')
    ELSE json_extract(p.quotas, '$.${quota}') END
  FROM billing_accounts b JOIN accounts a ON a.id = b.account_id LEFT JOIN plans p ON p.name = a.plan
  WHERE b.account_id = ${accountId}), ${UNLIMITED})`;

const COUNTS = { vms: 'vm_count', vcpus: 'vcpu_count', buckets: 'bucket_count', databases: 'database_count' };
const NAMES = ['vms', 'vcpus', 'buckets', 'databases'] as const;

const fits = (name: (typeof NAMES)[number]) =>
  `(? <= 0 OR ${COUNTS[name]} + ? <= ${limit(name, 'billing_accounts.account_id')})`;
const CLAIM = `UPDATE billing_accounts SET ${NAMES.map((name) => `${COUNTS[name]} = ${COUNTS[name]} + ?`)}
  WHERE account_id = ? AND ${NAMES.map(fits).join(' AND ')}`;

export class QuotaStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(accountId: number): Awaitable<QuotaRow | undefined> {
    return this.#reads.get(
      `SELECT plan, p.quotas AS plan_quotas, b.quotas, vm_count AS vms, vcpu_count AS vcpus,
         bucket_count AS buckets, database_count AS databases, storage_bytes
       FROM billing_accounts b JOIN accounts a ON a.id = b.account_id LEFT JOIN plans p ON p.name = a.plan
       WHERE account_id = ?`,
      accountId,
    );
  }

  /** Whether any plan or account has a limit of bytes. */
  async limitsStorage(): Promise<boolean> {
    const has = (table: string) =>
      `EXISTS (SELECT 1 FROM ${table} WHERE json_type(quotas, '$.storage_bytes') IS NOT NULL)`;
    const row = await this.#reads.get<{ any: number }>(
      `SELECT ${has('plans')} OR ${has('billing_accounts')} AS any`,
    );
    return row?.any === 1;
  }

  /** Refuses what would be more than the limit. */
  move(counted: Counted): Statement {
    const values = NAMES.map((name) => counted[name]);
    const params = [...values, counted.accountId, ...values.flatMap((value) => [value, value])];
    return { sql: CLAIM, params, expectChanges: 1 };
  }

  /** Refuses when the account keeps more than its limit now, what the commit added before it included. */
  expectStorage(accountId: number): Statement {
    return {
      sql: `UPDATE accounts SET id = id WHERE id = ? AND storage_bytes <= ${limit('storage_bytes', 'accounts.id')}`,
      params: [accountId],
      expectChanges: 1,
      // None, and still: it looks at what others sum up.
      sums: [],
    };
  }

  /** JSON of the account's own limits. */
  setOwn(accountId: number, quotas: string): Statement {
    const sql = 'UPDATE billing_accounts SET quotas = ? WHERE account_id = ?';
    return { sql, params: [quotas, accountId] };
  }
}
