/** SQL of what is set aside. */
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';

export interface HoldRow {
  readonly resource_id: string;
  readonly account_id: number;
  readonly amount_micro: number | bigint;
}

export class HoldStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(resourceId: string): Awaitable<HoldRow | undefined> {
    return this.#reads.get(
      'SELECT resource_id, account_id, amount_micro FROM holds WHERE resource_id = ?',
      resourceId,
    );
  }

  /** Those of machines that exist, with their type. */
  typedOf(accountId: number): Awaitable<(HoldRow & { readonly instance_type: string })[]> {
    return this.#reads.all(
      `SELECT h.resource_id, h.account_id, h.amount_micro, l.variant AS instance_type
       FROM holds h JOIN usage_lines l ON l.meter = 'vm.time' AND l.resource_id = h.resource_id
       WHERE h.account_id = ? ORDER BY placed_at`,
      accountId,
    );
  }

  listOf(accountId: number): Awaitable<HoldRow[]> {
    return this.#reads.all(
      'SELECT resource_id, account_id, amount_micro FROM holds WHERE account_id = ? ORDER BY placed_at',
      accountId,
    );
  }
}

/** Refuses when it is no longer as it was read. */
export function reduceHold({ resource_id, amount_micro }: HoldRow, byMicro: bigint): Statement {
  return {
    sql: 'UPDATE holds SET amount_micro = amount_micro - ? WHERE resource_id = ? AND amount_micro = ?',
    params: [byMicro, resource_id, amount_micro],
    expectChanges: 1,
  };
}

/** Refuses when it is no longer as it was read. */
export function raiseHold({ resource_id, amount_micro }: HoldRow, byMicro: bigint): Statement {
  return {
    sql: 'UPDATE holds SET amount_micro = amount_micro + ? WHERE resource_id = ? AND amount_micro = ?',
    params: [byMicro, resource_id, amount_micro],
    expectChanges: 1,
  };
}

/** Refuses when it is no longer as it was read. */
export function deleteHold({ resource_id, amount_micro }: HoldRow): Statement {
  return {
    sql: 'DELETE FROM holds WHERE resource_id = ? AND amount_micro = ?',
    params: [resource_id, amount_micro],
    expectChanges: 1,
  };
}

export function insertHold({ resource_id, account_id, amount_micro }: HoldRow, placedAt: number): Statement {
  return {
    sql: 'INSERT INTO holds (resource_id, account_id, amount_micro, placed_at) VALUES (?, ?, ?, ?)',
    params: [resource_id, account_id, amount_micro, placedAt],
  };
}
