/** SQL of one-time links: for the first administrator, and for setting passwords. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';

/** A link as stored, without its token. */
interface NewLink {
  readonly tokenHash: string;
  readonly expiresAt: number;
}

/** Set-up links name no account. */
export class SetupLinkStore {
  readonly #reads: Reads;

  constructor(deps: { readonly reads: Reads }) {
    this.#reads = deps.reads;
  }

  find(tokenHash: string): Awaitable<{ expires_at: number } | undefined> {
    return this.#reads.get(
      'SELECT expires_at FROM setup_links WHERE token_hash = ? AND account_id IS NULL',
      tokenHash,
    );
  }

  replace({ tokenHash, expiresAt }: NewLink): Statement[] {
    return [
      { sql: 'DELETE FROM setup_links WHERE account_id IS NULL', params: [] },
      {
        sql: 'INSERT INTO setup_links (token_hash, expires_at) VALUES (?, ?)',
        params: [tokenHash, expiresAt],
      },
    ];
  }

  /** Refused when the link was used meanwhile. */
  use(tokenHash: string): Statement {
    return {
      sql: 'DELETE FROM setup_links WHERE token_hash = ? AND account_id IS NULL',
      params: [tokenHash],
      expectChanges: 1,
    };
  }
}

/** Reset links name the account whose password they set. */
export class ResetLinkStore {
  readonly #reads: Reads;

  constructor(deps: { readonly reads: Reads }) {
    this.#reads = deps.reads;
  }

  /** The account of a link that is good at this time. */
  async accountOf(tokenHash: string, now: number): Promise<number | undefined> {
    const sql =
      'SELECT account_id FROM setup_links WHERE token_hash = ? AND account_id IS NOT NULL AND expires_at > ?';
    return (await this.#reads.get<{ account_id: number }>(sql, tokenHash, now))?.account_id;
  }

  /**
   * The account's only link. Refused unless the account is active. The first statement has commits that make
   * a link of one account wait for each other, also on PostgreSQL, where two would each miss the other's.
   */
  replace(accountId: number, { tokenHash, expiresAt }: NewLink): Statement[] {
    return [
      {
        sql: 'UPDATE accounts SET id = id WHERE id = ? AND is_active = 1 AND closed_at IS NULL',
        params: [accountId],
        expectChanges: 1,
      },
      deleteResetLinks(accountId),
      {
        sql: 'INSERT INTO setup_links (token_hash, expires_at, account_id) VALUES (?, ?, ?)',
        params: [tokenHash, expiresAt, accountId],
      },
    ];
  }

  /** Refused when the link was used or replaced meanwhile, or is over. */
  use(tokenHash: string, now: number): Statement {
    return {
      sql: 'DELETE FROM setup_links WHERE token_hash = ? AND account_id IS NOT NULL AND expires_at > ?',
      params: [tokenHash, now],
      expectChanges: 1,
    };
  }
}

/** Setting a password another way deletes the links for setting it. */
export function deleteResetLinks(accountId: number): Statement {
  return { sql: 'DELETE FROM setup_links WHERE account_id = ?', params: [accountId] };
}
