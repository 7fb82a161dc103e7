/** SQL of the journal: keys, passwords and closed accounts, which a restore must not revive. */
import { LAST_ACCOUNT_ID, skipAccountIds } from '../../metadata/account-ids.ts';
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';

export interface JournalAccount {
  readonly id: number;
  readonly is_active: 0 | 1;
  readonly password_hash: string;
}

export interface JournalKey {
  /** Public id of the key. */
  readonly id: string;
  readonly expires_at: number | null;
  /** All limits of the key, as text. */
  readonly rights: string;
}

interface KeyRow {
  readonly key_id: string;
  readonly expires_at: number | null;
  readonly account_id: number;
  readonly kind: 'main' | 'access';
  readonly scopes: string;
  readonly bucket_limits: string | null;
}

export class JournalStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Accounts that are not closed, by id, after `after`. */
  accounts(after: number | undefined, limit: number): Awaitable<JournalAccount[]> {
    return this.#reads.all(
      `SELECT id, is_active, password_hash FROM accounts WHERE id > ? AND closed_at IS NULL
       ORDER BY id LIMIT ?`,
      after ?? 0,
      limit,
    );
  }

  /** Sorted by id, after `after`. */
  async keys(after: string | undefined, limit: number): Promise<JournalKey[]> {
    const rows = await this.#reads.all<KeyRow>(
      `SELECT key_id, expires_at, account_id, kind, scopes, bucket_limits
       FROM api_keys WHERE key_id > ? ORDER BY key_id LIMIT ?`,
      after ?? '',
      limit,
    );
    return rows.map(({ key_id: id, expires_at, account_id, kind, scopes, bucket_limits }) => {
      const ends = kind === 'access' ? expires_at : null;
      return { id, expires_at, rights: JSON.stringify([account_id, kind, scopes, bucket_limits, ends]) };
    });
  }

  async heads(): Promise<{ readonly last_account: number; readonly last_transfer: number }> {
    const row = await this.#reads.get<{ last_account: number; last_transfer: number }>(
      `SELECT (${LAST_ACCOUNT_ID}) AS last_account,
         coalesce((SELECT max(seq) FROM ledger_transfers), 0) AS last_transfer`,
    );
    return row ?? { last_account: 0, last_transfer: 0 };
  }

  revoke(keyIds: readonly string[]): Statement[] {
    const sql = 'DELETE FROM api_keys WHERE key_id IN (SELECT value FROM json_each(?))';
    return keyIds.length === 0 ? [] : [{ sql, params: [JSON.stringify(keyIds)] }];
  }

  revokeAll(): Statement[] {
    return [{ sql: 'DELETE FROM api_keys', params: [] }];
  }

  /** `ends`: ms since 1970 by key id. */
  endKeys(ends: Readonly<Record<string, number>>): Statement[] {
    const sql = `UPDATE api_keys SET expires_at = (SELECT CAST(value AS BIGINT) FROM json_each(?) WHERE key = key_id)
                 WHERE key_id IN (SELECT key FROM json_each(?))`;
    const text = JSON.stringify(ends);
    return Object.keys(ends).length === 0 ? [] : [{ sql, params: [text, text] }];
  }

  block(accountIds: readonly number[]): Statement[] {
    const reason = 'The account was closed or suspended after the recovery point was created';
    const sql = `UPDATE accounts SET is_active = 0, suspended_reason = ?
                 WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?))`;
    return accountIds.length === 0 ? [] : [{ sql, params: [reason, JSON.stringify(accountIds)] }];
  }

  forgetPasswords(accountIds: readonly number[]): Statement[] {
    const sql = `UPDATE accounts SET password_hash = '' WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?))`;
    return accountIds.length === 0 ? [] : [{ sql, params: [JSON.stringify(accountIds)] }];
  }

  /** Never assigns account ids up to `last`. */
  skipAccounts(last: number): Statement[] {
    return [skipAccountIds(last)];
  }
}
