/** SQL of webhooks. */
import { turnOfAll } from '../metadata/change.ts';
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';

/** Times are ms since 1970. */
export interface WebhookRow {
  readonly id: number;
  readonly webhook_id: string;
  readonly account_id: number;
  readonly url: string;
  readonly description: string;
  /** JSON array. */
  readonly events: string;
  readonly is_enabled: number;
  /** See HEARS in audit-events.ts. */
  readonly hears_audit: number;
  readonly disabled_code: string | null;
  readonly disabled_message: string | null;
  readonly sealed_secret: Uint8Array;
  readonly sealed_old_secret: Uint8Array | null;
  readonly old_secret_until: number | null;
  readonly failing_since: number | null;
  readonly created_at: number;
  /** Pending deliveries of the webhook. */
  readonly pending: number;
}

/** A webhook as the target of events. */
export interface ListenerRow {
  readonly id: number;
  readonly events: string;
  readonly is_enabled: number;
  readonly hears_audit: number;
  /** 1: the account is an administrator's, and not suspended. */
  readonly is_all: number;
}

/** A webhook that receives audit entries. */
export interface AuditListenerRow {
  readonly account_id: number;
  readonly events: string;
  readonly hears_audit: number;
  readonly is_all: number;
}

const COLUMNS = `id, webhook_id, account_id, url, description, events, is_enabled, hears_audit,
  disabled_code,
  disabled_message, sealed_secret, sealed_old_secret, old_secret_until, failing_since, created_at,
  (SELECT count(*) FROM webhook_deliveries d
   WHERE d.webhook = webhooks.id AND d.state = 'pending') AS pending`;

const IS_ALL = 'CASE WHEN a.is_admin = 1 AND a.suspended_reason IS NULL THEN 1 ELSE 0 END AS is_all';

export class WebhookStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(webhookId: string): Awaitable<WebhookRow | undefined> {
    return this.#reads.get(`SELECT ${COLUMNS} FROM webhooks WHERE webhook_id = ?`, webhookId);
  }

  /** Oldest first, after row id `after`. */
  list(accountId: number, after: number, limit: number): Awaitable<WebhookRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS} FROM webhooks WHERE account_id = ? AND id > ? ORDER BY id LIMIT ?`,
      accountId,
      after,
      limit,
    );
  }

  /** Webhooks of an account that is not closed. */
  listeners(accountId: number): Awaitable<ListenerRow[]> {
    return this.#reads.all(
      `SELECT w.id, w.events, w.is_enabled, w.hears_audit, ${IS_ALL} FROM webhooks w JOIN accounts a ON a.id = w.account_id
       WHERE w.account_id = ? AND a.closed_at IS NULL ORDER BY w.id`,
      accountId,
    );
  }

  /** Enabled webhooks of all accounts that are not closed. */
  auditListeners(): Awaitable<AuditListenerRow[]> {
    return this.#reads.all(
      `SELECT w.account_id, w.events, w.hears_audit, ${IS_ALL}
       FROM webhooks w JOIN accounts a ON a.id = w.account_id
       WHERE w.hears_audit > 0 AND w.is_enabled = 1 AND a.closed_at IS NULL ORDER BY w.id`,
    );
  }

  /**
   * Refuses if as many other accounts already receive all audit entries. The first statement makes commits of
   * different administrators wait for each other, see turnOfAll().
   */
  expectRoomToHearAll(accountId: number, most: number): Statement[] {
    return [
      turnOfAll(),
      {
        sql: `UPDATE accounts SET id = id WHERE id = ? AND (SELECT count(DISTINCT account_id) FROM webhooks
                WHERE hears_audit = 2 AND account_id <> ?) < ?`,
        params: [accountId, accountId, most],
        expectChanges: 1,
      },
    ];
  }

  /** Refuses if the account already has `most` webhooks. */
  insert(
    row: Pick<
      WebhookRow,
      | 'webhook_id'
      | 'account_id'
      | 'url'
      | 'description'
      | 'events'
      | 'hears_audit'
      | 'sealed_secret'
      | 'created_at'
    >,
    most: number,
  ): Statement {
    return {
      sql: `INSERT INTO webhooks
              (webhook_id, account_id, url, description, events, hears_audit, sealed_secret, created_at)
            SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE (SELECT count(*) FROM webhooks WHERE account_id = ?) < ?`,
      params: [
        ...[row.webhook_id, row.account_id, row.url, row.description, row.events, row.hears_audit],
        ...[row.sealed_secret, row.created_at, row.account_id, most],
      ],
      expectChanges: 1,
    };
  }

  /** Stores the owner's changes. Refuses if the row has changed since it was read. */
  update(before: WebhookRow, after: WebhookRow): Statement {
    return {
      sql: `UPDATE webhooks SET url = ?, description = ?, events = ?, hears_audit = ?, is_enabled = ?,
              disabled_code = ?, disabled_message = ?, failing_since = ?
            WHERE id = ? AND url = ? AND description = ? AND events = ? AND is_enabled = ?
              AND hears_audit = ? AND coalesce(failing_since, 0) = ?`,
      params: [
        ...[after.url, after.description, after.events, after.hears_audit, after.is_enabled],
        ...[after.disabled_code, after.disabled_message, after.failing_since],
        ...[before.id, before.url, before.description, before.events, before.is_enabled],
        ...[before.hears_audit, before.failing_since ?? 0],
      ],
      expectChanges: 1,
    };
  }

  /** Keeps the reason of a webhook that is disabled already. */
  disable(id: number, reason: { readonly code: string; readonly message: string }): Statement {
    return {
      sql: `UPDATE webhooks SET is_enabled = 0, disabled_code = ?, disabled_message = ?
            WHERE id = ? AND is_enabled = 1`,
      params: [reason.code, reason.message, id],
    };
  }

  noteSuccess(id: number): Statement {
    return {
      sql: 'UPDATE webhooks SET failing_since = NULL WHERE id = ? AND failing_since IS NOT NULL',
      params: [id],
    };
  }

  noteFailure(id: number, at: number): Statement {
    return {
      sql: 'UPDATE webhooks SET failing_since = ? WHERE id = ? AND failing_since IS NULL',
      params: [at, id],
    };
  }

  /** The secret of `before` also signs until `until`. Refuses if it is no longer the current secret. */
  replaceSecret({ id, sealed_secret }: WebhookRow, sealed: Uint8Array, until: number): Statement {
    return {
      sql: `UPDATE webhooks SET sealed_old_secret = sealed_secret, old_secret_until = ?, sealed_secret = ?
            WHERE id = ? AND sealed_secret = ?`,
      params: [until, sealed, id, sealed_secret],
      expectChanges: 1,
    };
  }

  /** Also deletes its deliveries and their attempts. */
  delete(id: number): Statement {
    return { sql: 'DELETE FROM webhooks WHERE id = ?', params: [id], expectChanges: 1 };
  }

  deleteOfClosedAccounts(): Statement {
    return {
      sql: `DELETE FROM webhooks WHERE
              EXISTS (SELECT 1 FROM accounts a WHERE a.id = webhooks.account_id AND a.closed_at IS NOT NULL)`,
      params: [],
    };
  }

  /** Deletes expired secrets. */
  forgetOldSecrets(now: number): Statement {
    return {
      sql: `UPDATE webhooks SET sealed_old_secret = NULL, old_secret_until = NULL WHERE old_secret_until <= ?`,
      params: [now],
    };
  }
}
