/** SQL of what billing keeps of each account. */
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';

export type BillingState = 'ok' | 'low' | 'critical' | 'grace' | 'suspended';

export interface BillingRow {
  readonly account_id: number;
  readonly plan: string;
  /** May be spent. */
  readonly credits_micro: number | bigint;
  /** Set aside for what runs. */
  readonly held_micro: number | bigint;
  /** Of its use, what it could not pay. */
  readonly written_off_micro: number | bigint;
  /** Number of the last settlement. */
  readonly settlement: number;
  /** ms since 1970; 0: never. */
  readonly settled_at: number;
  readonly state: BillingState;
  /** Since when, ms since 1970. */
  readonly state_at: number;
  readonly vm_count: number;
  readonly vcpu_count: number;
  readonly bucket_count: number;
  readonly storage_bytes: number | bigint;
}

const ROWS = `SELECT account_id, plan, credits_micro, held_micro, written_off_micro, settlement, settled_at,
  state, state_at,
  vm_count, vcpu_count, bucket_count, storage_bytes
  FROM billing_accounts JOIN accounts ON id = account_id`;

export class BillingAccountStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(accountId: number): Awaitable<BillingRow | undefined> {
    return this.#reads.get(`${ROWS} WHERE account_id = ?`, accountId);
  }

  /** Changes no row when another settlement was faster than the one that saw number `before`. */
  countSettlement(accountId: number, before: number, at: number): Statement {
    return {
      sql: `UPDATE billing_accounts SET settlement = settlement + 1, settled_at = ?
            WHERE account_id = ? AND settlement = ?`,
      params: [at, accountId, before],
    };
  }
}

/** Refuses when there is no such account. */
export function addToWrittenOff(accountId: number, micro: bigint): Statement {
  const sql = 'UPDATE billing_accounts SET written_off_micro = written_off_micro + ? WHERE account_id = ?';
  return { sql, params: [micro, accountId], expectChanges: 1 };
}
