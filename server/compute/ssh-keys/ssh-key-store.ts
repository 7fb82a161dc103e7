/** SQL of the SSH keys of accounts. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';

export interface SshKeyRow {
  readonly account_id: number;
  readonly name: string;
  readonly public_key: string;
  /** ms since 1970. */
  readonly created_at: number;
}

export class SshKeyStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Oldest first. */
  listOf(accountId: number): Awaitable<SshKeyRow[]> {
    const sql =
      'SELECT account_id, name, public_key, created_at FROM ssh_keys WHERE account_id = ? ORDER BY id';
    return this.#reads.all(sql, accountId);
  }

  /** Changes no row when the account has `limit` keys. Refused as not unique for a name that it has. */
  insert({ account_id, name, public_key, created_at }: SshKeyRow, limit: number): Statement {
    return {
      sql: `INSERT INTO ssh_keys (account_id, name, public_key, created_at)
            SELECT id, ?, ?, ? FROM accounts WHERE id = ?
              AND (SELECT count(*) FROM ssh_keys WHERE account_id = ?) < ?`,
      params: [name, public_key, created_at, account_id, account_id, limit],
    };
  }

  delete(accountId: number, name: string): Statement {
    return { sql: 'DELETE FROM ssh_keys WHERE account_id = ? AND name = ?', params: [accountId, name] };
  }
}
