/**
 * SQL of reserved names: when an account gives up a bucket name at the S3 endpoint, or a machine's
 * host name, only that account may use the name for 30 days. Until then, programs that still use it
 * get an error. Each account keeps its last MOST_RESTING names per kind, so that no one can reserve
 * names in bulk.
 */
import type { Awaitable, Reads, Statement } from './metadata.ts';

export type RestingKind = 'bucket' | 'host';

export const REST_MS = 30 * 24 * 3_600_000;

/** Maximum reserved names of an account: as many buckets as the default quota allows. */
export const MOST_RESTING: Readonly<Record<RestingKind, number>> = { bucket: 1000, host: 100 };

/** The request of an account for a name, at a time in ms since 1970. */
interface Wish {
  readonly kind: RestingKind;
  readonly name: string;
  readonly accountId: number;
  readonly at: number;
}

const FOR_ANOTHER = `SELECT 1 FROM resting_names
  WHERE kind = ? AND name = ? AND account_id <> ? AND ends_at > ?`;
const REST = 'INSERT INTO resting_names (kind, name, account_id, ends_at)';
const RENEW =
  'ON CONFLICT (kind, name) DO UPDATE SET account_id = excluded.account_id, ends_at = excluded.ends_at';

const REST_HOSTS = `${REST} SELECT 'host', hostname, account_id, CAST(? AS BIGINT) FROM vm_ports`;
const REST_PORT = `${REST_HOSTS} WHERE port_id = ? AND hostname IS NOT NULL ${RENEW}`;
const REST_MACHINE = `${REST_HOSTS} WHERE vm_id = ? AND hostname IS NOT NULL ${RENEW}`;

export class RestingNamesStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Whether the name is reserved for another account. */
  async isForAnother({ kind, name, accountId, at }: Wish): Promise<boolean> {
    return (await this.#reads.get(FOR_ANOTHER, kind, name, accountId, at)) !== undefined;
  }

  /** Whether the account gave up that name, and it is reserved. */
  async isFor({ kind, name, accountId, at }: Wish): Promise<boolean> {
    const sql = 'SELECT 1 FROM resting_names WHERE kind = ? AND name = ? AND account_id = ? AND ends_at > ?';
    const found: Awaitable<unknown> = this.#reads.get(sql, kind, name, accountId, at);
    return (await found) !== undefined;
  }

  /** Changes no row while the name is reserved for another account. */
  expectNotForAnother({ kind, name, accountId, at }: Wish): Statement {
    return {
      sql: `UPDATE accounts SET id = id WHERE id = ? AND NOT EXISTS (${FOR_ANOTHER})`,
      params: [accountId, kind, name, accountId, at],
    };
  }

  /** The name is in use again. */
  wake(kind: RestingKind, name: string): Statement {
    return { sql: 'DELETE FROM resting_names WHERE kind = ? AND name = ?', params: [kind, name] };
  }

  /** Call before deleting the bucket. A name that others cannot reach is not reserved. */
  restBucket(
    { id, account_id }: { readonly id: number; readonly account_id: number },
    at: number,
  ): Statement[] {
    const sql = `${REST} SELECT 'bucket', global_name, account_id, CAST(? AS BIGINT) FROM buckets
      WHERE id = ? AND global_name IS NOT NULL ${RENEW}`;
    return [{ sql, params: [at + REST_MS, id] }, trim('bucket', account_id)];
  }

  /** Call before deleting the published port; a port without a host name is ignored. */
  restPort(
    { port_id, account_id }: { readonly port_id: string; readonly account_id: number },
    at: number,
  ): Statement[] {
    return [{ sql: REST_PORT, params: [at + REST_MS, port_id] }, trim('host', account_id)];
  }

  /** Call before deleting the machine with its published ports. */
  restMachine(
    { vm_id, account_id }: { readonly vm_id: string; readonly account_id: number },
    at: number,
  ): Statement[] {
    return [{ sql: REST_MACHINE, params: [at + REST_MS, vm_id] }, trim('host', account_id)];
  }

  /** Ends expired reservations. */
  sweep(at: number): Statement {
    return { sql: 'DELETE FROM resting_names WHERE ends_at <= ?', params: [at] };
  }
}

/** Drops an account's oldest reservations above the maximum. */
function trim(kind: RestingKind, accountId: number): Statement {
  return {
    sql: `DELETE FROM resting_names WHERE account_id = ? AND kind = ? AND name IN (
            SELECT name FROM resting_names WHERE account_id = ? AND kind = ?
            ORDER BY ends_at DESC, name DESC LIMIT 1000000 OFFSET ?)`,
    params: [accountId, kind, accountId, kind, MOST_RESTING[kind]],
  };
}
