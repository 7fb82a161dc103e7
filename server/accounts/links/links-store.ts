/** SQL of one-time links: for the first administrator, new passwords, and e-mail addresses. */
import { turnAt } from '../../metadata/change.ts';
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';

/** A link as stored, without its token. */
interface NewLink {
  readonly tokenHash: string;
  readonly expiresAt: number;
  /** The host name for which it is valid; default: any. */
  readonly host?: string;
}

export interface ResetLinkRow {
  readonly account_id: number;
  readonly host: string;
}

/** Set-up links have no account. */
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

/** Reset links have the account whose password they set. */
export class ResetLinkStore {
  readonly #reads: Reads;

  constructor(deps: { readonly reads: Reads }) {
    this.#reads = deps.reads;
  }

  /** The link, if it is valid at this time. */
  find(tokenHash: string, now: number): Awaitable<ResetLinkRow | undefined> {
    return this.#reads.get(
      `SELECT account_id, host FROM setup_links
       WHERE token_hash = ? AND account_id IS NOT NULL AND purpose = 'password' AND expires_at > ?`,
      tokenHash,
      now,
    );
  }

  /**
   * The account's only link. Refused unless the account is active. The first statement makes
   * commits that create a link of one account wait for each other, also on PostgreSQL, where each
   * of two would miss the other's.
   */
  replace(accountId: number, link: NewLink): Statement[] {
    const sql = 'UPDATE accounts SET id = id WHERE id = ? AND is_active = 1 AND closed_at IS NULL';
    return [{ sql, params: [accountId], expectChanges: 1 }, ...onlyLink(accountId, link)];
  }

  /** The same after the right password, also for an account that its owner has closed. */
  replaceAtSignIn(accountId: number, link: NewLink): Statement[] {
    const sql = `UPDATE accounts SET id = id WHERE id = ? AND closed_at IS NULL
      AND (is_active = 1 OR removal_at IS NOT NULL AND suspended_reason IS NULL)`;
    return [{ sql, params: [accountId], expectChanges: 1 }, ...onlyLink(accountId, link)];
  }

  /** Refused if the link was used or replaced in the meantime, or has expired. */
  use(tokenHash: string, now: number): Statement {
    return {
      sql: `DELETE FROM setup_links
        WHERE token_hash = ? AND account_id IS NOT NULL AND purpose = 'password' AND expires_at > ?`,
      params: [tokenHash, now],
      expectChanges: 1,
    };
  }
}

function onlyLink(accountId: number, { tokenHash, expiresAt, host = '' }: NewLink): Statement[] {
  return [
    deleteResetLinks(accountId),
    {
      sql: 'INSERT INTO setup_links (token_hash, expires_at, account_id, host) VALUES (?, ?, ?, ?)',
      params: [tokenHash, expiresAt, accountId, host],
    },
  ];
}

/** Another password, address or right deletes the links for setting a password: others may have them. */
export function deleteResetLinks(accountId: number): Statement {
  return {
    sql: "DELETE FROM setup_links WHERE account_id = ? AND purpose = 'password'",
    params: [accountId],
  };
}

/** A link that confirms an address, as it is stored. */
export interface EmailLinkRow {
  readonly account_id: number;
  readonly email: string;
  readonly host: string;
}

/** Links that confirm the e-mail address of an account. */
export class EmailLinkStore {
  readonly #reads: Reads;

  constructor(deps: { readonly reads: Reads }) {
    this.#reads = deps.reads;
  }

  /** The link, if it is valid at this time. */
  find(tokenHash: string, now: number): Awaitable<EmailLinkRow | undefined> {
    return this.#reads.get(
      `SELECT account_id, email, host FROM setup_links
       WHERE token_hash = ? AND purpose = 'email' AND expires_at > ?`,
      tokenHash,
      now,
    );
  }

  /** The account's only link of this kind. The first statement is like that of a reset link. */
  replace(row: EmailLinkRow & NewLink): Statement[] {
    return [
      turnAt('accounts', row.account_id),
      { sql: "DELETE FROM setup_links WHERE account_id = ? AND purpose = 'email'", params: [row.account_id] },
      {
        sql: `INSERT INTO setup_links (token_hash, expires_at, account_id, host, purpose, email)
          VALUES (?, ?, ?, ?, 'email', ?)`,
        params: [row.tokenHash, row.expiresAt, row.account_id, row.host, row.email],
      },
    ];
  }

  /** Refused when the link was used or replaced meanwhile. */
  use(tokenHash: string): Statement {
    return {
      sql: "DELETE FROM setup_links WHERE token_hash = ? AND purpose = 'email'",
      params: [tokenHash],
      expectChanges: 1,
    };
  }
}
