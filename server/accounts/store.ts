/** All SQL of accounts, keys and sessions. Changes are returned as statements. */
import { LAST_ACCOUNT_ID } from '../metadata/account-ids.ts';
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';

export interface AccountRow {
  readonly id: number;
  readonly username: string;
  readonly email: string;
  readonly password_hash: string;
  readonly plan: string;
  readonly is_admin: number;
  /** 1: it was an administrator's before. */
  readonly was_admin: number;
  readonly is_auditor: number;
  readonly is_active: number;
  readonly suspended_reason: string | null;
  /** Available balance. */
  readonly credits_micro: number | bigint;
  /** Balance on hold for running resources. */
  readonly held_micro: number | bigint;
  /** Spend cap by an administrator; null: none. */
  readonly admin_cap_micro: number | bigint | null;
  readonly billing_state: 'ok' | 'low' | 'critical' | 'grace' | 'suspended';
  readonly exhausted_at: number | null;
  readonly grace_ends_at: number | null;
  readonly storage_bytes: number | bigint;
  readonly created_at: number;
  readonly last_login: number | null;
  /** 64 hex digits: the public id of the account. */
  readonly canonical_id: string;
  /** When an account closed by its owner is removed, unless the owner signs in before. */
  readonly removal_at: number | null;
  /** End of the account, which is then suspended; null: it does not expire. */
  readonly expires_at: number | null;
  /** The invitation used at registration; null: none. */
  readonly invitation_id: string | null;
  /** 1: the next login must set a new password. */
  readonly must_change: number;
  /** When its holder confirmed the address; null: not yet. */
  readonly email_verified_at: number | null;
  /** Subjects of mail that the account gets, separated by commas. */
  readonly mail_about: string;
}

export interface KeyRow {
  readonly key_hash: string;
  readonly account_id: number;
  readonly key_id: string;
  readonly kind: 'main' | 'access';
  readonly sealed_key: Uint8Array | null;
  readonly name: string;
  readonly scopes: string;
  readonly bucket_limits: string | null;
  readonly s3_access_key: string | null;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly last_used_at: number | null;
}

export interface TransferRow {
  readonly debit: string;
  readonly credit: string;
  readonly amount_micro: number | bigint;
  readonly reference: string;
}

/** The columns of a key or session, and of its account, that authentication needs. */
export interface S3SecretRow {
  readonly s3_sealed_secret: Uint8Array;
}

export interface CredentialRow {
  readonly account_id: number;
  readonly username: string;
  readonly canonical_id: string | null;
  readonly is_admin: number;
  readonly is_auditor: number;
  readonly is_active: number;
  readonly suspended_reason: string | null;
  readonly credential_id: string;
  readonly secret_hash: string;
  readonly scopes: string;
  readonly bucket_limits: string | null;
  readonly expires_at: number | null;
  /** Sessions only; 0 for keys. */
  readonly last_seen_at: number;
}

export interface NewAccountRow {
  readonly id: number;
  readonly username: string;
  readonly usernameFolded: string;
  readonly email: string;
  /** null: the address is not claimed. */
  readonly emailFolded: string | null;
  readonly passwordHash: string;
  readonly isAdmin: boolean;
  readonly createdAt: number;
  readonly canonicalId: string;
  readonly expiresAt: number | null;
  readonly invitationId: string | null;
  /** null: the address is not confirmed. */
  readonly emailVerifiedAt: number | null;
}

export interface NewAccessKeyRow {
  readonly keyHash: string;
  readonly accountId: number;
  readonly keyId: string;
  readonly name: string;
  readonly scopes: string;
  readonly bucketLimits: string | null;
  readonly s3AccessKey: string;
  readonly s3SealedSecret: Uint8Array;
  readonly createdAt: number;
  readonly expiresAt: number | null;
}

/** A registration, with its invitation; '': none. */
interface Joining {
  readonly now: number;
  readonly ownId: string;
}

const ACCOUNT = `SELECT id, username, email, password_hash, plan, is_admin, was_admin, is_auditor, is_active,
  suspended_reason, credits_micro, held_micro, admin_cap_micro, state AS billing_state, exhausted_at, grace_ends_at,
  storage_bytes, created_at, last_login, canonical_id, removal_at, expires_at, invitation_id, must_change, email_verified_at, mail_about
  FROM accounts JOIN billing_accounts ON account_id = id WHERE closed_at IS NULL`;
/** An open invitation of others has the name. */
const INVITED = `SELECT 1 FROM invitations WHERE lower(username) = ? AND uses < max_uses AND revoked_at IS NULL
  AND expires_at > ? AND (account_expires_at IS NULL OR account_expires_at > ?) AND id <> ?`;
const KEY = `SELECT key_hash, account_id, key_id, kind, sealed_key, name, scopes, bucket_limits,
  s3_access_key, created_at, expires_at, last_used_at FROM api_keys`;
const HOLDER = `a.id AS account_id, a.username, a.canonical_id, a.is_admin, a.is_auditor, a.is_active,
  a.suspended_reason`;
const KEY_HOLDER = `SELECT ${HOLDER}, k.key_id AS credential_id, k.key_hash AS secret_hash, k.scopes,
  k.bucket_limits, k.expires_at, 0 AS last_seen_at
  FROM api_keys k JOIN accounts a ON a.id = k.account_id WHERE a.closed_at IS NULL`;
const S3_KEY_HOLDER = KEY_HOLDER.replace(' FROM', ', k.s3_sealed_secret FROM');

export class AccountStore {
  readonly #reads: Reads;

  constructor(deps: { readonly reads: Reads }) {
    this.#reads = deps.reads;
  }

  // Reads. Closed accounts are never found.

  account(id: number): Awaitable<AccountRow | undefined> {
    return this.#reads.get(`${ACCOUNT} AND id = ?`, id);
  }

  /** The last use of the account by a session or a key, or its last login; null: never. */
  async lastSeenAt(id: number): Promise<number | null> {
    const sql = `SELECT max(at) AS at FROM (SELECT last_login AS at FROM accounts WHERE id = ?
      UNION ALL SELECT max(last_seen_at) FROM sessions WHERE account_id = ?
      UNION ALL SELECT max(last_used_at) FROM api_keys WHERE account_id = ?) AS uses`;
    return (await this.#reads.get<{ at: number | null }>(sql, id, id, id))?.at ?? null;
  }

  accountByUsername(folded: string): Awaitable<AccountRow | undefined> {
    return this.#reads.get(`${ACCOUNT} AND username_folded = ?`, folded);
  }

  /** Whether an open invitation other than `ownId` has the name. */
  async isInvited(folded: string, { now, ownId }: Joining): Promise<boolean> {
    return (await this.#reads.get(INVITED, folded, now, now, ownId)) !== undefined;
  }

  accountByEmail(folded: string): Awaitable<AccountRow | undefined> {
    return this.#reads.get(`${ACCOUNT} AND email_folded = ?`, folded);
  }

  accountByCanonicalId(id: string): Awaitable<AccountRow | undefined> {
    return this.#reads.get(`${ACCOUNT} AND canonical_id = ?`, id);
  }

  accountsAfter(id: number, limit: number): Awaitable<AccountRow[]> {
    return this.#reads.all(`${ACCOUNT} AND id > ? ORDER BY id LIMIT ?`, id, limit);
  }

  /** The highest id that must not be reused; 0 if there is none. */
  async lastAccountId(): Promise<number> {
    return (await this.#reads.get<{ id: number }>(LAST_ACCOUNT_ID))?.id ?? 0;
  }

  async hasAdministrator(): Promise<boolean> {
    const sql = 'SELECT 1 FROM accounts WHERE is_admin = 1 AND closed_at IS NULL LIMIT 1';
    return (await this.#reads.get(sql)) !== undefined;
  }

  keyHolder(keyHash: string): Awaitable<CredentialRow | undefined> {
    return this.#reads.get(`${KEY_HOLDER} AND k.key_hash = ?`, keyHash);
  }

  /** The holder of an S3 key pair, with its secret, sealed. */
  s3KeyHolder(accessKeyId: string): Awaitable<(CredentialRow & S3SecretRow) | undefined> {
    return this.#reads.get(`${S3_KEY_HOLDER} AND k.s3_access_key = ?`, accessKeyId);
  }

  keyHolderById(keyId: string): Awaitable<CredentialRow | undefined> {
    return this.#reads.get(`${KEY_HOLDER} AND k.key_id = ?`, keyId);
  }

  /** The holder of a session token, which the page keeps; `secret_hash` is of the cookie. */
  sessionHolder(pageTokenHash: string): Awaitable<CredentialRow | undefined> {
    return this.#reads.get(
      `SELECT ${HOLDER}, s.token_hash AS credential_id, s.token_hash AS secret_hash, '["*"]' AS scopes, NULL AS bucket_limits,
       s.expires_at, s.last_seen_at
       FROM sessions s JOIN accounts a ON a.id = s.account_id
       WHERE s.page_token_hash = ? AND a.closed_at IS NULL`,
      pageTokenHash,
    );
  }

  /** Whether a key (by its id) or session (by its cookie's hash) is valid for its account at this time. */
  async isCredentialGood(via: 'key' | 'session', id: string, now: number): Promise<boolean> {
    const from = via === 'key' ? 'api_keys c' : 'sessions c';
    const name = via === 'key' ? 'key_id' : 'token_hash';
    const row = await this.#reads.get(
      `SELECT 1 FROM ${from} JOIN accounts a ON a.id = c.account_id WHERE c.${name} = ?
       AND a.is_active = 1 AND a.closed_at IS NULL AND (c.expires_at IS NULL OR c.expires_at > ?)`,
      id,
      now,
    );
    return row !== undefined;
  }

  keyById(keyId: string): Awaitable<KeyRow | undefined> {
    return this.#reads.get(`${KEY} WHERE key_id = ?`, keyId);
  }

  /** Newest first: the first without an end is the account's current key. */
  mainKeys(accountId: number): Awaitable<KeyRow[]> {
    return this.#reads.all(`${KEY} WHERE account_id = ? AND kind = 'main' ORDER BY key_id DESC`, accountId);
  }

  accessKeysAfter(accountId: number, keyId: string, limit: number): Awaitable<KeyRow[]> {
    return this.#reads.all(
      `${KEY} WHERE account_id = ? AND kind = 'access' AND key_id > ? ORDER BY key_id LIMIT ?`,
      accountId,
      keyId,
      limit,
    );
  }

  /** Number of valid keys of the account at this time, of both kinds. */
  async countKeys(accountId: number, now: number): Promise<number> {
    const sql =
      'SELECT count(*) AS keys FROM api_keys WHERE account_id = ? AND (expires_at IS NULL OR expires_at > ?)';
    return Number((await this.#reads.get<{ keys: number }>(sql, accountId, now))?.keys ?? 0);
  }

  /** A transfer of the ledger, by its id. */
  transfer(id: string): Awaitable<TransferRow | undefined> {
    const sql = 'SELECT debit, credit, amount_micro, reference FROM ledger_transfers WHERE id = ?';
    return this.#reads.get(sql, id);
  }

  // Accounts

  insertAccount(row: NewAccountRow): Statement {
    return {
      sql: `INSERT INTO accounts (id, username, username_folded, email, email_folded, password_hash, is_admin,
        created_at, canonical_id, expires_at, invitation_id, email_verified_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      params: [
        row.id,
        row.username,
        row.usernameFolded,
        row.email,
        row.emailFolded,
        row.passwordHash,
        row.isAdmin ? 1 : 0,
        row.createdAt,
        row.canonicalId,
        row.expiresAt,
        row.invitationId,
        row.emailVerifiedAt,
      ],
    };
  }

  /** Refused if an open invitation other than `ownId` has the name of the new account. */
  expectNotInvited(id: number, folded: string, { now, ownId }: Joining): Statement {
    return {
      sql: `UPDATE accounts SET id = id WHERE id = ? AND NOT EXISTS (${INVITED})`,
      params: [id, folded, now, now, ownId],
      expectChanges: 1,
    };
  }

  /** Refused if the password changed since the check, or the account is not active. */
  recordLogin(id: number, login: { readonly passwordHash: string; readonly at: number }): Statement {
    return {
      sql: `UPDATE accounts SET last_login = ?
        WHERE id = ? AND password_hash = ? AND is_active = 1 AND closed_at IS NULL`,
      params: [login.at, id, login.passwordHash],
      expectChanges: 1,
    };
  }

  /** Refused if the password is no longer `was`. */
  setPassword(id: number, change: { readonly was: string; readonly becomes: string }): Statement {
    return {
      sql: `UPDATE accounts SET password_hash = ?, must_change = 0
        WHERE id = ? AND password_hash = ? AND closed_at IS NULL`,
      params: [change.becomes, id, change.was],
      expectChanges: 1,
    };
  }

  /** null resumes; an account closed by its owner stays closed. */
  setSuspended(id: number, reason: string | null): Statement {
    const isActive = reason === null ? 'CASE WHEN removal_at IS NULL THEN 1 ELSE 0 END' : '0';
    return {
      sql: `UPDATE accounts SET is_active = ${isActive}, suspended_reason = ? WHERE id = ? AND closed_at IS NULL`,
      params: [reason, id],
      expectChanges: 1,
    };
  }

  /** Refused if the balance changed since the response was built. */
  expectBalance(id: number, micro: number): Statement {
    return {
      sql: 'UPDATE accounts SET id = id WHERE id = ? AND credits_micro = ? AND closed_at IS NULL',
      params: [id, micro],
      expectChanges: 1,
    };
  }

  // Keys

  insertMainKey(key: {
    readonly keyHash: string;
    readonly accountId: number;
    readonly keyId: string;
    readonly sealedKey: Uint8Array;
    readonly createdAt: number;
  }): Statement {
    return {
      sql: `INSERT INTO api_keys (key_hash, account_id, key_id, kind, sealed_key, created_at)
        VALUES (?, ?, ?, 'main', ?, ?)`,
      params: [key.keyHash, key.accountId, key.keyId, key.sealedKey, key.createdAt],
    };
  }

  /** Refused when `keyId` is no longer the account's current key. */
  endMainKeyAt(keyId: string, at: number): Statement {
    return {
      sql: 'UPDATE api_keys SET expires_at = ? WHERE key_id = ? AND expires_at IS NULL',
      params: [at, keyId],
      expectChanges: 1,
    };
  }

  deleteMainKeys(accountId: number): Statement {
    return { sql: "DELETE FROM api_keys WHERE account_id = ? AND kind = 'main'", params: [accountId] };
  }

  /** Refused if the account already has `max`. */
  insertAccessKey(row: NewAccessKeyRow, max: number): Statement {
    return {
      sql: `INSERT INTO api_keys (key_hash, account_id, key_id, kind, name, scopes, bucket_limits,
        s3_access_key, s3_sealed_secret, created_at, expires_at) SELECT ?, ?, ?, 'access', ?, ?, ?, ?, ?, ?, ?
        WHERE (SELECT count(*) FROM api_keys WHERE account_id = ? AND kind = 'access') < ?`,
      params: [
        row.keyHash,
        row.accountId,
        row.keyId,
        row.name,
        row.scopes,
        row.bucketLimits,
        row.s3AccessKey,
        row.s3SealedSecret,
        row.createdAt,
        row.expiresAt,
        row.accountId,
        max,
      ],
      expectChanges: 1,
    };
  }

  deleteAccessKey(accountId: number, keyId: string): Statement {
    return {
      sql: "DELETE FROM api_keys WHERE account_id = ? AND key_id = ? AND kind = 'access'",
      params: [accountId, keyId],
      expectChanges: 1,
    };
  }

  touchKey(keyHash: string, at: number): Statement {
    return { sql: 'UPDATE api_keys SET last_used_at = ? WHERE key_hash = ?', params: [at, keyHash] };
  }

  // Sessions

  touchSession(tokenHash: string, at: number): Statement {
    return { sql: 'UPDATE sessions SET last_seen_at = ? WHERE token_hash = ?', params: [at, tokenHash] };
  }

  /** Removes what can never be used again. Expired access keys stay listed for `keptMs`. */
  sweep(now: number, limits: { readonly idleMs: number; readonly keptMs: number }): Statement[] {
    return [
      {
        sql: 'DELETE FROM sessions WHERE expires_at <= ? OR last_seen_at <= ?',
        params: [now, now - limits.idleMs],
      },
      { sql: "DELETE FROM api_keys WHERE kind = 'main' AND expires_at <= ?", params: [now] },
      {
        sql: "DELETE FROM api_keys WHERE kind = 'access' AND expires_at <= ?",
        params: [now - limits.keptMs],
      },
      { sql: 'DELETE FROM setup_links WHERE expires_at <= ?', params: [now] },
    ];
  }
}
