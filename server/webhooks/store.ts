/** SQL of webhooks: where events go. */
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
  readonly disabled_code: string | null;
  readonly disabled_message: string | null;
  readonly sealed_secret: Uint8Array;
  readonly sealed_old_secret: Uint8Array | null;
  readonly old_secret_until: number | null;
  readonly failing_since: number | null;
  readonly created_at: number;
}

/** Where an event may go. */
export interface ListenerRow {
  readonly id: number;
  readonly events: string;
  readonly is_enabled: number;
}

/** What its owner changes; undefined stays. */
export interface WebhookFields {
  readonly url?: string | undefined;
  readonly description?: string | undefined;
  readonly events?: string | undefined;
}

const COLUMNS = `id, webhook_id, account_id, url, description, events, is_enabled, disabled_code,
  disabled_message, sealed_secret, sealed_old_secret, old_secret_until, failing_since, created_at`;

export class WebhookStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(webhookId: string): Awaitable<WebhookRow | undefined> {
    return this.#reads.get(`SELECT ${COLUMNS} FROM webhooks WHERE webhook_id = ?`, webhookId);
  }

  /** Oldest first, those after row id `after`. */
  list(accountId: number, after: number, limit: number): Awaitable<WebhookRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS} FROM webhooks WHERE account_id = ? AND id > ? ORDER BY id LIMIT ?`,
      accountId,
      after,
      limit,
    );
  }

  /** Of an account that is not closed. */
  listeners(accountId: number): Awaitable<ListenerRow[]> {
    return this.#reads.all(
      `SELECT w.id, w.events, w.is_enabled FROM webhooks w JOIN accounts a ON a.id = w.account_id
       WHERE w.account_id = ? AND a.closed_at IS NULL ORDER BY w.id`,
      accountId,
    );
  }

  /** Refuses when the account has `most` of them. */
  insert(
    row: Pick<
      WebhookRow,
      'webhook_id' | 'account_id' | 'url' | 'description' | 'events' | 'sealed_secret' | 'created_at'
    >,
    most: number,
  ): Statement {
    return {
      sql: `INSERT INTO webhooks (webhook_id, account_id, url, description, events, sealed_secret, created_at)
            SELECT ?, ?, ?, ?, ?, ?, ? WHERE (SELECT count(*) FROM webhooks WHERE account_id = ?) < ?`,
      params: [
        ...[row.webhook_id, row.account_id, row.url, row.description, row.events, row.sealed_secret],
        ...[row.created_at, row.account_id, most],
      ],
      expectChanges: 1,
    };
  }

  /** Refuses when it is gone. Another address begins without the failures of the one before. */
  update(id: number, fields: WebhookFields): Statement {
    return {
      sql: `UPDATE webhooks SET description = coalesce(?, description), events = coalesce(?, events),
              failing_since = CASE WHEN coalesce(?, url) = url THEN failing_since END, url = coalesce(?, url)
            WHERE id = ?`,
      params: [
        ...[fields.description ?? null, fields.events ?? null, fields.url ?? null, fields.url ?? null, id],
      ],
      expectChanges: 1,
    };
  }

  enable(id: number): Statement {
    return {
      sql: `UPDATE webhooks SET is_enabled = 1, disabled_code = NULL, disabled_message = NULL,
              failing_since = NULL WHERE id = ? AND is_enabled = 0`,
      params: [id],
    };
  }

  /** Leaves one that is disabled already with the reason it has. */
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

  /** The secret until now signs as well until `until`. Both are sealed for the same context. */
  replaceSecret(id: number, sealed: Uint8Array, until: number): Statement {
    return {
      sql: `UPDATE webhooks SET sealed_old_secret = sealed_secret, old_secret_until = ?, sealed_secret = ?
            WHERE id = ?`,
      params: [until, sealed, id],
      expectChanges: 1,
    };
  }

  /** Deliveries and their attempts go with it. */
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

  /** Secrets that sign no longer. */
  forgetOldSecrets(now: number): Statement {
    return {
      sql: `UPDATE webhooks SET sealed_old_secret = NULL, old_secret_until = NULL WHERE old_secret_until <= ?`,
      params: [now],
    };
  }
}
