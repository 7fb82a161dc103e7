/** The SQL of sessions. Session authentication is in store.ts, which joins the account. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';

export interface SessionRow {
  readonly session_id: string;
  /** The hash of the cookie. */
  readonly token_hash: string;
  /** The hash of the session token, which the page keeps. */
  readonly page_token_hash: string;
  readonly account_id: number;
  readonly user_agent: string;
  readonly address: string;
  readonly created_at: number;
  readonly last_seen_at: number;
  readonly expires_at: number;
  /** When the password was last confirmed. */
  readonly password_at: number;
}

export class SessionStore {
  readonly #reads: Reads;

  constructor(deps: { readonly reads: Reads }) {
    this.#reads = deps.reads;
  }

  /** Sessions of an account, oldest first: ids begin with the time. */
  sessionsAfter(accountId: number, id: string, limit: number): Awaitable<SessionRow[]> {
    return this.#reads.all(
      'SELECT * FROM sessions WHERE account_id = ? AND session_id > ? ORDER BY session_id LIMIT ?',
      accountId,
      id,
      limit,
    );
  }

  session(id: string): Awaitable<SessionRow | undefined> {
    return this.#reads.get('SELECT * FROM sessions WHERE session_id = ?', id);
  }

  sessionOfPage(pageTokenHash: string): Awaitable<SessionRow | undefined> {
    return this.#reads.get('SELECT * FROM sessions WHERE page_token_hash = ?', pageTokenHash);
  }

  insertSession(row: SessionRow): Statement {
    return {
      sql: `INSERT INTO sessions (session_id, token_hash, page_token_hash, account_id, user_agent, address,
        created_at, last_seen_at, expires_at, password_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      params: [
        row.session_id,
        row.token_hash,
        row.page_token_hash,
        row.account_id,
        row.user_agent,
        row.address,
        row.created_at,
        row.last_seen_at,
        row.expires_at,
        row.password_at,
      ],
    };
  }

  /** undefined: there is no such session. */
  async passwordGivenAt(tokenHash: string): Promise<number | undefined> {
    const sql = 'SELECT password_at FROM sessions WHERE token_hash = ?';
    return (await this.#reads.get<{ password_at: number }>(sql, tokenHash))?.password_at;
  }

  /** Refused if the session has ended, or the password changed since the check. */
  notePassword(tokenHash: string, given: { readonly passwordHash: string; readonly at: number }): Statement {
    return {
      sql: `UPDATE sessions SET password_at = ? WHERE token_hash = ? AND EXISTS (SELECT 1 FROM accounts
        WHERE id = sessions.account_id AND password_hash = ? AND closed_at IS NULL)`,
      params: [given.at, tokenHash, given.passwordHash],
      expectChanges: 1,
    };
  }

  deleteSession(tokenHash: string): Statement {
    return { sql: 'DELETE FROM sessions WHERE token_hash = ?', params: [tokenHash] };
  }
}

/** Ends an account's sessions, except the one with this cookie; '': all. */
export function deleteSessionsExcept(accountId: number, tokenHash: string): Statement {
  return {
    sql: 'DELETE FROM sessions WHERE account_id = ? AND token_hash <> ?',
    params: [accountId, tokenHash],
  };
}
