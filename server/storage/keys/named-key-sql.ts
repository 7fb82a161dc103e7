/** SQL of the named keys of accounts. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';

export interface NamedKeyRow {
  readonly id: number;
  readonly account_id: number;
  /** The name that the account chose. */
  readonly key_id: string;
  readonly sealed: Uint8Array;
  readonly created_at: number;
  /** null: enabled. */
  readonly disabled_at: number | null;
}

const COLUMNS = 'id, account_id, key_id, sealed, created_at, disabled_at';

export class NamedKeySql {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(accountId: number, keyId: string): Awaitable<NamedKeyRow | undefined> {
    return this.#reads.get(
      `SELECT ${COLUMNS} FROM encryption_keys WHERE account_id = ? AND key_id = ?`,
      accountId,
      keyId,
    );
  }

  byRow(id: number): Awaitable<NamedKeyRow | undefined> {
    return this.#reads.get(`SELECT ${COLUMNS} FROM encryption_keys WHERE id = ?`, id);
  }

  /** By name. */
  list(accountId: number, limit: number): Awaitable<NamedKeyRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS} FROM encryption_keys WHERE account_id = ? ORDER BY key_id LIMIT ?`,
      accountId,
      limit,
    );
  }

  /** Refuses (unique) when the account has that name, and when it has `most` already. */
  insert(key: Omit<NamedKeyRow, 'id' | 'disabled_at'>, most: number): Statement {
    return {
      sql: `INSERT INTO encryption_keys (account_id, key_id, sealed, created_at) SELECT ?, ?, ?, ?
            WHERE (SELECT count(*) FROM encryption_keys WHERE account_id = ?) < ?`,
      params: [key.account_id, key.key_id, key.sealed, key.created_at, key.account_id, most],
      expectChanges: 1,
    };
  }

  /** `disabledAt`: null enables it. Refuses if the key is gone. */
  setDisabled(id: number, disabledAt: number | null): Statement {
    return {
      sql: 'UPDATE encryption_keys SET disabled_at = ? WHERE id = ?',
      params: [disabledAt, id],
      expectChanges: 1,
    };
  }

  /** Refuses while bytes or uploads need it. */
  delete(id: number): Statement {
    return {
      sql: `DELETE FROM encryption_keys WHERE id = ?
            AND NOT EXISTS (SELECT 1 FROM blobs WHERE named_key = ?)
            AND NOT EXISTS (SELECT 1 FROM uploads WHERE named_key = ?)`,
      params: [id, id, id],
      expectChanges: 1,
    };
  }
}
