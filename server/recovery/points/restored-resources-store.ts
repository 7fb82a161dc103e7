/** SQL of accounts restored as new ones, and of their origins. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';

export interface OldAccount {
  readonly id: number;
  readonly username: string;
}

export interface NewAccount {
  readonly accountId: number;
  readonly username: string;
  readonly canonicalId: string;
  readonly email: string;
}

export interface RestoredResourceRow {
  /** The new account. */
  readonly account_id: number;
  /** `account`, or kind and id of the resource in the point. */
  readonly source: string;
  readonly point_id: string;
  readonly made: string;
}

export const ACCOUNT = 'account';

export class RestoredResourcesStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** An account that is not closed, by id or user name. */
  account(idOrName: string): Awaitable<OldAccount | undefined> {
    return this.#reads.get(
      `SELECT id, username FROM accounts WHERE closed_at IS NULL
       AND (username_folded = ? OR id = ?) ORDER BY CASE WHEN username_folded = ? THEN 0 ELSE 1 END LIMIT 1`,
      idOrName.toLowerCase(),
      /^\d{1,15}$/.test(idOrName) ? Number(idOrName) : 0,
      idOrName.toLowerCase(),
    );
  }

  /** The live account with that name, if a restore created it. */
  restored(username: string): Awaitable<(NewAccount & Omit<RestoredResourceRow, 'source'>) | undefined> {
    return this.#reads.get(
      `SELECT a.id AS "accountId", a.username, a.canonical_id AS "canonicalId", a.email,
         t.account_id, t.point_id, t.made
       FROM accounts a JOIN restored_things t ON t.account_id = a.id AND t.source = ?
       WHERE a.username_folded = ? AND a.closed_at IS NULL`,
      ACCOUNT,
      username.toLowerCase(),
    );
  }

  /** Id of the restored resource; undefined: not restored yet. */
  async made(accountId: number, source: string): Promise<string | undefined> {
    const sql = 'SELECT made FROM restored_things WHERE account_id = ? AND source = ?';
    return (await this.#reads.get<{ made: string }>(sql, accountId, source))?.made;
  }

  insert({ account_id, source, point_id, made }: RestoredResourceRow, at: number): Statement {
    return {
      sql: 'INSERT INTO restored_things (account_id, source, point_id, made, at) VALUES (?, ?, ?, ?, ?)',
      params: [account_id, source, point_id, made, at],
    };
  }
}
