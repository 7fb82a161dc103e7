/** SQL of the credits of accounts: the balance, and the credit state. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';
import type { MeterName } from '../metering/meters.ts';

type Int = number | bigint;

export type BillingState = 'ok' | 'low' | 'critical' | 'grace' | 'suspended';

export interface BillingRow {
  readonly account_id: number;
  readonly plan: string;
  /** Available balance. */
  readonly credits_micro: Int;
  /** Balance on hold for running machines. */
  readonly held_micro: Int;
  /** Charges that the account could not pay. */
  readonly written_off_micro: Int;
  /** Number of the last rating. */
  readonly settlement: number;
  readonly state: BillingState;
  /** ms since 1970. */
  readonly exhausted_at: number | null;
  /** When the state began, ms since 1970. */
  readonly state_at: number;
  /** The lower of both spend caps; null: none. */
  readonly cap_micro: Int | null;
}

/** A calendar month, ms since 1970; `to` is its exclusive end. */
interface Month {
  readonly from: number;
  readonly to: number;
}

/** Spend caps of an account, and its spending in the requested month. */
export interface SpendRow {
  readonly account_id: number;
  readonly own_cap_micro: Int | null;
  readonly admin_cap_micro: Int | null;
  /** The lower of both caps. */
  readonly cap_micro: Int | null;
  /** Percentages of the cap, ascending, separated by commas. */
  readonly warn_percents: string;
  /** All rated usage of the month. */
  readonly spent_micro: Int;
  /** Number of the last rating. */
  readonly settlement: number;
  /** Beginning of the month of the last warning. */
  readonly warned_from: number;
  readonly warned_percent: number;
  /** When the cap was reached, ms since 1970; null: not reached. */
  readonly capped_at: number | null;
}

const CAP = `CASE WHEN own_cap_micro < coalesce(admin_cap_micro, own_cap_micro + 1) THEN own_cap_micro
  ELSE admin_cap_micro END`;
const IN_MONTH = `(SELECT CAST(coalesce(sum(cost_micro), 0) AS BIGINT) FROM usage_windows w
  WHERE w.account_id = billing_accounts.account_id AND window_start >= ? AND window_start < ?)`;
/**
 * The counter, which each rating adds to, is used where it is as of the last rating; else the windows are
 * summed: in a new month, and after a rating by a node of an earlier version, which did not count.
 */
const IS_COUNTED = 'spent_from = ? AND spent_settlement = settlement';
const SPENT = `CASE WHEN ${IS_COUNTED} THEN spent_micro ELSE ${IN_MONTH} END`;
const SPEND = `own_cap_micro, admin_cap_micro, ${CAP} AS cap_micro, warn_percents, ${SPENT} AS spent_micro,
  settlement, warned_from, warned_percent, capped_at`;
const ofMonth = ({ from, to }: Month) => [from, from, to];

const ROWS = `SELECT account_id, plan, credits_micro, held_micro, written_off_micro, settlement,
  state, exhausted_at, state_at, ${CAP} AS cap_micro
  FROM billing_accounts JOIN accounts ON id = account_id`;

/** Memory of machines that run, may run after an error, or are about to start or stop. */
const MEMORY = `SELECT coalesce(sum(memory_mb), 0) FROM vms JOIN accounts a ON a.id = vms.account_id
  WHERE (started_at IS NOT NULL OR state IN ('starting', 'stopping'))`;
const UNTRUSTED_MEMORY = `${MEMORY} AND a.is_admin = 0 AND NOT EXISTS
    (SELECT 1 FROM ledger_transfers WHERE credit = 'account:' || a.id AND code = 'admin_grant')`;

/** Memory for machines of accounts that are not trusted, MiB. */
export interface MemoryShares {
  /** Memory of all such accounts together. */
  readonly allMb: number;
  readonly eachMb: number;
}

export interface CreditStateRow extends SpendRow {
  readonly plan: string;
  readonly credits_micro: Int;
  readonly state: BillingState;
  readonly exhausted_at: number | null;
  /** Steady, ms; in grace only. */
  readonly grace_until: number | null;
  readonly resume_due: number;
  /** In grace and suspended: whether credits were added since. */
  readonly is_topped_up: number;
  /** Whether an account without credits, at its cap or blocked has a running machine or an open database. */
  readonly is_in_use: number;
  /** 0: an administrator suspended it, or it is closed. */
  readonly is_active: number;
  readonly is_closed: number;
}

/** A rating. `micro`: the cost of the windows of `month` in it. */
interface Counted {
  /** ms since 1970. */
  readonly at: number;
  readonly month: Month;
  readonly micro: bigint;
}

interface SpendChange {
  readonly ownCapMicro: Int | null;
  readonly adminCapMicro: Int | null;
  readonly warnPercents: string;
  readonly cappedAt: number | null;
  readonly warnedFrom: number;
  readonly warnedPercent: number;
}

export interface CreditStateChange {
  readonly before: BillingState;
  readonly after: BillingState;
  /** The balance that the decision is based on. */
  readonly creditsMicro: Int;
  /** ms since 1970. */
  readonly at: number;
  readonly exhaustedAt: number | null;
  /** End of the grace: as shown, ms since 1970, and steady. */
  readonly graceEndsAt: number | null;
  readonly graceUntil: number | null;
}

/** A line that uses something, or has usage that is not rated, with its account. */
export interface BurningLine {
  readonly meter: MeterName;
  readonly resource_id: string;
  readonly account_id: number;
  readonly variant: string;
  readonly level: Int;
  readonly level_since: Int;
  readonly pending: Int;
  readonly plan: string;
  readonly credits_micro: Int;
  readonly state: BillingState;
}

/** Open databases. */
const OPEN = "d.state IN ('ready', 'read_only')";
const ROW = `SELECT account_id, plan, credits_micro, state, exhausted_at, grace_until, resume_due, ${SPEND},
  is_active, CASE WHEN closed_at IS NULL THEN 0 ELSE 1 END AS is_closed,
  CASE WHEN state IN ('grace', 'suspended') AND EXISTS (
    SELECT 1 FROM ledger_transfers
    WHERE credit = 'account:' || account_id AND seq > state_seq AND debit NOT LIKE 'held:%'
      AND debit NOT LIKE 'system:revenue-%')
  THEN 1 ELSE 0 END AS is_topped_up,
  CASE WHEN (billing_accounts.state = 'suspended' OR is_active = 0 OR capped_at IS NOT NULL) AND (EXISTS (
    SELECT 1 FROM usage_lines l
    WHERE l.account_id = billing_accounts.account_id AND meter = 'vm.time' AND level > 0)
  OR EXISTS (SELECT 1 FROM databases d WHERE d.account_id = billing_accounts.account_id AND ${OPEN}))
  THEN 1 ELSE 0 END AS is_in_use
  FROM billing_accounts JOIN accounts ON id = account_id`;
/** Accounts that every check of credits includes, whatever they use. */
const WATCHED = `(state <> 'ok' OR resume_due = 1 OR own_cap_micro IS NOT NULL OR admin_cap_micro IS NOT NULL
  OR capped_at IS NOT NULL)`;

export class BillingAccountStore {
  readonly #reads: Reads;
  /** Accounts with credits that an administrator granted, by a transfer up to this one. */
  readonly #granted = new Set<number>();
  #grantsReadTo = 0;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** True for an administrator's account, and once an administrator has granted it credits. */
  async isTrusted(accountId: number): Promise<boolean> {
    const row = await this.#reads.get(
      `SELECT 1 FROM accounts WHERE id = ? AND (is_admin = 1 OR EXISTS
         (SELECT 1 FROM ledger_transfers WHERE credit = ? AND code = 'admin_grant'))`,
      accountId,
      `account:${accountId}`,
    );
    return row !== undefined;
  }

  /** Ids of all accounts that isTrusted() is true for. After the first call, only new grants are read. */
  async trusted(): Promise<ReadonlySet<number>> {
    const { upTo } = (await this.#reads.get<{ upTo: Int }>(
      'SELECT coalesce(max(seq), 0) AS "upTo" FROM ledger_transfers',
    )) ?? { upTo: 0 };
    const grants = await this.#reads.all<{ credit: string }>(
      `SELECT credit FROM ledger_transfers
       WHERE debit = 'system:grants' AND seq > ? AND code = 'admin_grant'`,
      this.#grantsReadTo,
    );
    for (const { credit } of grants) this.#granted.add(Number(credit.slice('account:'.length)));
    this.#grantsReadTo = Number(upTo);
    const admins = await this.#reads.all<{ id: number }>('SELECT id FROM accounts WHERE is_admin = 1');
    return new Set([...this.#granted, ...admins.map(({ id }) => id)]);
  }

  /** Bytes of all object versions and open uploads, by account id; only of those that have any. */
  async storedBytes(): Promise<ReadonlyMap<number, number>> {
    const rows = await this.#reads.all<{ id: number; bytes: Int }>(
      'SELECT id, storage_bytes AS bytes FROM accounts WHERE storage_bytes > 0',
    );
    return new Map(rows.map(({ id, bytes }) => [id, Number(bytes)]));
  }

  /** Memory of running machines of all untrusted accounts, MiB. */
  async untrustedMemoryMb(): Promise<number> {
    const row = await this.#reads.get<{ mb: Int }>(`SELECT (${UNTRUSTED_MEMORY}) AS mb`);
    return Number(row?.mb ?? 0);
  }

  /** Memory of running machines of one account, MiB. */
  async memoryMb(accountId: number): Promise<number> {
    const row = await this.#reads.get<{ mb: Int }>(`SELECT (${MEMORY} AND a.id = ?) AS mb`, accountId);
    return Number(row?.mb ?? 0);
  }

  /** Refuses if their memory, or that of this account, exceeds the limits with this commit. */
  expectUntrustedMemory(accountId: number, { allMb, eachMb }: MemoryShares): Statement {
    return {
      sql: `UPDATE billing_accounts SET account_id = account_id WHERE account_id = ?
            AND (${UNTRUSTED_MEMORY}) <= ? AND (${MEMORY} AND a.id = ?) <= ?`,
      params: [accountId, allMb, accountId, eachMb],
      expectChanges: 1,
    };
  }

  find(accountId: number): Awaitable<BillingRow | undefined> {
    return this.#reads.get(`${ROWS} WHERE account_id = ?`, accountId);
  }

  /**
   * Changes no row if another rating followed the one numbered `before`. `micro`: its cost in the windows
   * of the month; must come before the statements that add these.
   */
  countRating({ account_id, settlement }: BillingRow, { at, month, micro }: Counted): Statement {
    return {
      sql: `UPDATE billing_accounts SET settlement = settlement + 1, settled_at = ?,
              spent_micro = ${SPENT} + ?, spent_from = ?, spent_settlement = settlement + 1
            WHERE account_id = ? AND settlement = ?`,
      params: [at, ...ofMonth(month), micro, month.from, account_id, settlement],
    };
  }

  findState(accountId: number, month: Month): Awaitable<CreditStateRow | undefined> {
    return this.#reads.get(`${ROW} WHERE account_id = ?`, ...ofMonth(month), accountId);
  }

  /**
   * Accounts whose credit state is not ok, with machines to start, or with a spend cap, by id, after
   * `after`.
   */
  watched(month: Month, after: number, limit: number): Awaitable<CreditStateRow[]> {
    return this.#reads.all(
      `${ROW} WHERE ${WATCHED} AND account_id > ? ORDER BY account_id LIMIT ?`,
      ...ofMonth(month),
      after,
      limit,
    );
  }

  findSpend(accountId: number, month: Month): Awaitable<SpendRow | undefined> {
    return this.#reads.get(
      `SELECT account_id, ${SPEND} FROM billing_accounts JOIN accounts ON id = account_id
       WHERE account_id = ? AND closed_at IS NULL`,
      ...ofMonth(month),
      accountId,
    );
  }

  /** Refuses if a rating, a warning or another cap came since the row was read. */
  changeSpend(before: SpendRow, after: SpendChange): Statement {
    const { cappedAt, warnedFrom, warnedPercent, ownCapMicro, adminCapMicro, warnPercents } = after;
    // Resources that the cap stopped start again once spending is below it.
    const isDue = cappedAt !== null ? 1 : 0;
    return {
      sql: `UPDATE billing_accounts SET own_cap_micro = ?, admin_cap_micro = ?, warn_percents = ?, capped_at = ?,
              warned_from = ?, warned_percent = ?,
              resume_due = CASE WHEN CAST(? AS BIGINT) = 1 THEN 1 ELSE resume_due END
            WHERE account_id = ? AND settlement = ? AND coalesce(capped_at, 0) = ? AND warned_from = ?
              AND warned_percent = ? AND coalesce(own_cap_micro, -1) = ? AND coalesce(admin_cap_micro, -1) = ?`,
      params: [
        ...[ownCapMicro, adminCapMicro, warnPercents, cappedAt, warnedFrom, warnedPercent, isDue],
        ...[before.account_id, before.settlement, before.capped_at ?? 0, before.warned_from],
        ...[before.warned_percent, before.own_cap_micro ?? -1, before.admin_cap_micro ?? -1],
      ],
      expectChanges: 1,
    };
  }

  /** An administrator's cap for an account that the same commit creates. */
  capNew(accountId: number, capMicro: number): Statement {
    return {
      sql: 'UPDATE billing_accounts SET admin_cap_micro = ? WHERE account_id = ?',
      params: [capMicro, accountId],
      expectChanges: 1,
    };
  }

  /**
   * Accounts that an administrator suspended and that have running machines or open databases, or that are
   * closed and have machines (each has a disk) or databases (retained ones included).
   */
  async barredInUse(): Promise<number[]> {
    const rows = await this.#reads.all<{ account_id: number }>(
      `SELECT DISTINCT account_id FROM usage_lines JOIN accounts ON id = account_id
       WHERE level > 0 AND is_active = 0
         AND (meter = 'vm.time' OR (meter = 'vm.disk' AND closed_at IS NOT NULL))
       UNION
       SELECT d.account_id FROM databases d JOIN accounts a ON a.id = d.account_id
       WHERE is_active = 0
         AND (${OPEN} OR (closed_at IS NOT NULL AND (d.state <> 'deleting' OR deletes_at IS NOT NULL)))`,
    );
    return rows.map((row) => row.account_id);
  }

  /** Lines in use of a meter, by resource, after `after`. */
  burning(meter: MeterName, after: string, limit: number): Awaitable<BurningLine[]> {
    return this.#reads.all(
      `SELECT meter, resource_id, l.account_id, variant, level, level_since, pending, plan, credits_micro, state
       FROM usage_lines l JOIN billing_accounts b ON b.account_id = l.account_id
         JOIN accounts a ON a.id = l.account_id
       WHERE meter = ? AND resource_id > ? AND (level <> 0 OR pending <> 0) ORDER BY resource_id LIMIT ?`,
      meter,
      after,
      limit,
    );
  }

  /** Refuses if state or balance have changed since the decision. */
  changeState(accountId: number, change: CreditStateChange): Statement {
    const { before, after, creditsMicro, at, exhaustedAt, graceEndsAt, graceUntil } = change;
    return {
      sql: `UPDATE billing_accounts SET state = ?, state_at = ?, exhausted_at = ?, grace_ends_at = ?,
              grace_until = ?, state_seq = (SELECT coalesce(max(seq), 0) FROM ledger_transfers),
              resume_due = CASE 'suspended' WHEN ? THEN 0 WHEN state THEN 1 ELSE resume_due END
            WHERE account_id = ? AND state = ?
              AND (SELECT credits_micro FROM accounts WHERE id = account_id) = ?`,
      params: [
        ...[after, at, exhaustedAt, graceEndsAt, graceUntil, after],
        ...[accountId, before, creditsMicro],
      ],
      expectChanges: 1,
    };
  }

  /** Stopped machines are due to start again once nothing prevents it. */
  resumeDue(accountId: number): Statement {
    return { sql: 'UPDATE billing_accounts SET resume_due = 1 WHERE account_id = ?', params: [accountId] };
  }

  /** Records that no machine is due to start. */
  resumed(accountId: number): Statement {
    return {
      sql: `UPDATE billing_accounts SET resume_due = 0
            WHERE account_id = ? AND state <> 'suspended' AND capped_at IS NULL`,
      params: [accountId],
    };
  }
}

/** Refuses if the account does not exist. */
export function addToWrittenOff(accountId: number, micro: bigint): Statement {
  const sql = 'UPDATE billing_accounts SET written_off_micro = written_off_micro + ? WHERE account_id = ?';
  return { sql, params: [micro, accountId], expectChanges: 1 };
}
