/** SQL of pending events, of their deliveries to webhooks, and of the attempts. */
import { turnAt } from '../metadata/change.ts';
import type { Awaitable, Reads, RowIdOf, Statement } from '../metadata/metadata.ts';
import type { DueRow } from '../resources/serving-order.ts';
import type { WrittenEvent } from './events-store.ts';

export interface PendingEventRow {
  readonly id: number;
  readonly account_id: number;
  readonly type: string;
  readonly body: string;
}

/** Times are ms since 1970. */
export interface DeliveryRow {
  readonly id: number;
  readonly delivery_id: string;
  readonly webhook: number;
  readonly event_id: string;
  readonly type: string;
  readonly body: string;
  readonly state: 'pending' | 'delivered' | 'failed';
  readonly reason: string | null;
  readonly tries: number;
  readonly next_at: number | null;
  readonly created_at: number;
}

export interface AttemptRow {
  readonly delivery: number;
  readonly at: number;
  readonly status: number | null;
  readonly duration_ms: number;
  readonly response: string | null;
  readonly error: string | null;
}

/** At most `limit`, before row id `before`, in one state or any. */
export interface DeliveryPage {
  readonly before: number;
  readonly limit: number;
  readonly state?: DeliveryRow['state'] | null | undefined;
}

/** A delivery with the data for an attempt. */
export interface OutgoingRow extends DeliveryRow {
  readonly webhook_id: string;
  readonly url: string;
  readonly failing_since: number | null;
  readonly sealed_secret: Uint8Array;
  readonly sealed_old_secret: Uint8Array | null;
  readonly old_secret_until: number | null;
  readonly account_closed: number;
  readonly account_id: number;
  /** See ListenerRow. */
  readonly is_all: number;
  readonly hears_audit: number;
}

const COLUMNS = `d.id, d.delivery_id, d.webhook, e.event_id, e.type, e.body, d.state, d.reason, d.tries,
  d.next_at, d.created_at`;
const FROM = 'FROM webhook_deliveries d JOIN webhook_events e ON e.id = d.event';
const NOT_WAITING = `NOT EXISTS (SELECT 1 FROM webhook_deliveries d
  WHERE d.event = webhook_events.id AND d.state = 'pending')`;

export class DeliveryStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Oldest first. */
  pendingEvents(limit: number): Awaitable<PendingEventRow[]> {
    return this.#reads.all(
      'SELECT id, account_id, type, body FROM webhook_events WHERE is_pending = 1 ORDER BY id LIMIT ?',
      limit,
    );
  }

  /** The next delivery of each webhook with pending ones: one index lookup each, however many are pending. */
  nextOfEach(): Awaitable<DueRow[]> {
    return this.#reads.all(
      `WITH RECURSIVE waiting (webhook) AS (
         SELECT min(webhook) FROM webhook_deliveries WHERE state = 'pending'
         UNION ALL
         SELECT (SELECT min(webhook) FROM webhook_deliveries
                 WHERE state = 'pending' AND webhook > waiting.webhook)
         FROM waiting WHERE webhook IS NOT NULL)
       SELECT waiting.webhook AS receiver, w.account_id,
         (SELECT min(next_at) FROM webhook_deliveries d
          WHERE d.webhook = waiting.webhook AND d.state = 'pending') AS next_at
       FROM waiting JOIN webhooks w ON w.id = waiting.webhook`,
    );
  }

  /** The next delivery of a webhook. */
  nextOf(webhook: number): Awaitable<OutgoingRow | undefined> {
    return this.#reads.get(
      `SELECT ${COLUMNS}, w.webhook_id, w.url, w.failing_since, w.sealed_secret, w.sealed_old_secret,
         w.old_secret_until, CASE WHEN a.closed_at IS NULL THEN 0 ELSE 1 END AS account_closed,
         w.account_id, w.hears_audit,
         CASE WHEN a.is_admin = 1 AND a.suspended_reason IS NULL THEN 1 ELSE 0 END AS is_all
       ${FROM} JOIN webhooks w ON w.id = d.webhook JOIN accounts a ON a.id = w.account_id
       WHERE d.webhook = ? AND d.state = 'pending' ORDER BY d.next_at, d.id LIMIT 1`,
      webhook,
    );
  }

  find(webhook: number, deliveryId: string): Awaitable<DeliveryRow | undefined> {
    return this.#reads.get(
      `SELECT ${COLUMNS} ${FROM} WHERE d.webhook = ? AND d.delivery_id = ?`,
      webhook,
      deliveryId,
    );
  }

  /** Newest first. */
  list(webhook: number, { before, limit, state = null }: DeliveryPage): Awaitable<DeliveryRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS} ${FROM} WHERE d.webhook = ? AND d.id < ? AND d.state = coalesce(?, d.state)
       ORDER BY d.id DESC LIMIT ?`,
      ...[webhook, before, state, limit],
    );
  }

  /** Oldest first. */
  attempts(delivery: number): Awaitable<AttemptRow[]> {
    return this.#reads.all(
      `SELECT delivery, at, status, duration_ms, response, error FROM webhook_attempts
       WHERE delivery = ? ORDER BY id`,
      delivery,
    );
  }

  /** Refuses if the event was resolved before. */
  resolveEvent(id: number): Statement {
    return {
      sql: 'UPDATE webhook_events SET is_pending = 0 WHERE id = ? AND is_pending = 1',
      params: [id],
      expectChanges: 1,
    };
  }

  /** Drops an event without subscribers. Refuses if it was resolved before. */
  dropEvent(id: number): Statement {
    return {
      sql: 'DELETE FROM webhook_events WHERE id = ? AND is_pending = 1',
      params: [id],
      expectChanges: 1,
    };
  }

  /** An event for one webhook only, whose delivery is in the same commit. */
  insertResolvedEvent(event: WrittenEvent): Statement {
    return {
      sql: `INSERT INTO webhook_events (event_id, account_id, type, body, is_pending, at)
            VALUES (?, ?, ?, ?, 0, ?)`,
      params: [event.eventId, event.accountId, event.type, event.body, event.at],
    };
  }

  /** Refuses (foreign key) if the webhook does not exist. */
  insertDelivery(row: {
    readonly deliveryId: string;
    readonly webhook: number;
    readonly event: number | RowIdOf;
    /** Reason of the failure; null: pending, due at `at`. */
    readonly failed: string | null;
    readonly at: number;
  }): Statement {
    const isPending = row.failed === null;
    return {
      sql: `INSERT INTO webhook_deliveries (delivery_id, webhook, event, state, reason, next_at, created_at)
            VALUES (?, ?, ?, ?, ?, ?, ?)`,
      params: [
        ...[row.deliveryId, row.webhook, row.event, isPending ? 'pending' : 'failed', row.failed],
        ...[isPending ? row.at : null, row.at],
      ],
    };
  }

  /**
   * Stores the state after an attempt. Refuses if the delivery was replayed, given up or removed in
   * the meantime.
   */
  resolve(before: DeliveryRow, after: Pick<DeliveryRow, 'state' | 'reason' | 'next_at'>): Statement {
    return {
      sql: `UPDATE webhook_deliveries SET state = ?, reason = ?, next_at = ?, tries = tries + 1
            WHERE id = ? AND state = 'pending' AND tries = ?`,
      params: [after.state, after.reason, after.next_at, before.id, before.tries],
      expectChanges: 1,
    };
  }

  insertAttempt(row: AttemptRow): Statement {
    return {
      sql: `INSERT INTO webhook_attempts (delivery, at, status, duration_ms, response, error)
            VALUES (?, ?, ?, ?, ?, ?)`,
      params: [row.delivery, row.at, row.status, row.duration_ms, row.response, row.error],
    };
  }

  /** Cuts the responses to the earlier attempts of a delivery to `kept` characters. */
  shortenResponses(delivery: number, kept: number): Statement {
    return {
      sql: `UPDATE webhook_attempts SET response = substr(response, 1, ?)
            WHERE delivery = ? AND length(response) > ?`,
      params: [kept, delivery, kept],
    };
  }

  /** Deletes all but the `kept` newest attempts of a delivery, which may be replayed any number of times. */
  deleteOldAttempts(delivery: number, kept: number): Statement {
    return {
      sql: `DELETE FROM webhook_attempts WHERE delivery = ? AND id <=
              (SELECT id FROM webhook_attempts WHERE delivery = ? ORDER BY id DESC LIMIT 1 OFFSET ?)`,
      params: [delivery, delivery, kept],
    };
  }

  /** Fails the pending deliveries of a webhook. */
  giveUpOn(webhook: number, reason: string): Statement {
    return {
      sql: `UPDATE webhook_deliveries SET state = 'failed', next_at = NULL, reason = ?
            WHERE webhook = ? AND state = 'pending'`,
      params: [reason, webhook],
    };
  }

  /** Makes a delivery pending again, due now, with no attempts. Refuses if it does not exist. */
  replay(id: number, now: number): Statement {
    return {
      sql: `UPDATE webhook_deliveries SET state = 'pending', reason = NULL, tries = 0, next_at = ?
            WHERE id = ?`,
      params: [now, id],
      expectChanges: 1,
    };
  }

  async countFailed(webhook: number, since: number): Promise<number> {
    const row = await this.#reads.get<{ count: number }>(
      `SELECT count(*) AS count FROM webhook_deliveries
       WHERE webhook = ? AND state = 'failed' AND created_at >= ?`,
      webhook,
      since,
    );
    return row?.count ?? 0;
  }

  /** At most a few more than the limit of pending ones. */
  async countPending(webhook: number): Promise<number> {
    const row = await this.#reads.get<{ count: number }>(
      "SELECT count(*) AS count FROM webhook_deliveries WHERE webhook = ? AND state = 'pending'",
      webhook,
    );
    return row?.count ?? 0;
  }

  /** Makes the oldest deliveries that failed since a time pending again, due now, with no attempts. */
  replayFailed(
    webhook: number,
    { since, most, now }: { readonly since: number; readonly most: number; readonly now: number },
  ): Statement {
    return {
      sql: `UPDATE webhook_deliveries SET state = 'pending', reason = NULL, tries = 0, next_at = ?
            WHERE id IN (SELECT id FROM webhook_deliveries
                         WHERE webhook = ? AND state = 'failed' AND created_at >= ? ORDER BY id LIMIT ?)`,
      params: [now, webhook, since, most],
    };
  }

  /** Refuses when more than `most` deliveries of the webhook are pending, with those of this commit. */
  expectPending(webhook: number, most: number): Statement[] {
    return [
      turnAt('webhooks', webhook),
      {
        sql: `UPDATE webhooks SET id = id WHERE id = ? AND (SELECT count(*) FROM webhook_deliveries d
                WHERE d.webhook = webhooks.id AND d.state = 'pending') <= ?`,
        params: [webhook, most],
        expectChanges: 1,
      },
    ];
  }

  /** Fails the oldest pending deliveries above the `kept` newest. `+id`: the index of all is far longer. */
  giveUpBeyond(webhook: number, kept: number, reason: string): Statement {
    return {
      sql: `UPDATE webhook_deliveries SET state = 'failed', next_at = NULL, reason = ?
            WHERE webhook = ? AND state = 'pending' AND id <=
              (SELECT id FROM webhook_deliveries WHERE webhook = ? AND state = 'pending'
               ORDER BY +id DESC LIMIT 1 OFFSET ?)`,
      params: [reason, webhook, webhook, kept],
    };
  }

  /** Number of webhooks in the same account. */
  async siblings(webhook: number): Promise<number> {
    const row = await this.#reads.get<{ count: number }>(
      `SELECT count(*) AS count FROM webhooks
       WHERE account_id = (SELECT account_id FROM webhooks WHERE id = ?)`,
      webhook,
    );
    return row?.count ?? 0;
  }

  /** Webhooks with more than `kept` deliveries. */
  async crowded(kept: number): Promise<number[]> {
    const rows = await this.#reads.all<{ webhook: number }>(
      'SELECT webhook FROM webhook_deliveries GROUP BY webhook HAVING count(*) > ?',
      kept,
    );
    return rows.map(({ webhook }) => webhook);
  }

  /** The oldest non-pending deliveries above the `kept` newest. */
  beyond(
    webhook: number,
    { kept, limit }: { readonly kept: number; readonly limit: number },
  ): Awaitable<{ readonly id: number; readonly event: number }[]> {
    return this.#reads.all(
      `SELECT id, event FROM webhook_deliveries WHERE webhook = ? AND state <> 'pending' AND id <=
         (SELECT id FROM webhook_deliveries WHERE webhook = ? ORDER BY id DESC LIMIT 1 OFFSET ?)
       ORDER BY id LIMIT ?`,
      ...[webhook, webhook, kept, limit],
    );
  }

  /** Deletes a delivery, unless it is pending again, and its event, unless it has other deliveries. */
  deleteDelivery({ id, event }: { readonly id: number; readonly event: number }): Statement[] {
    return [
      { sql: "DELETE FROM webhook_deliveries WHERE id = ? AND state <> 'pending'", params: [id] },
      {
        sql: `DELETE FROM webhook_events WHERE id = ? AND is_pending = 0
                AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.event = webhook_events.id)`,
        params: [event],
      },
    ];
  }

  /** Events older than `before` without pending deliveries. */
  oldEvents(before: number, limit: number): Awaitable<{ readonly id: number }[]> {
    return this.#reads.all(
      `SELECT id FROM webhook_events WHERE at < ? AND is_pending = 0 AND ${NOT_WAITING} ORDER BY at LIMIT ?`,
      before,
      limit,
    );
  }

  /** Deletes an event with its deliveries and their attempts, unless one is pending again. */
  deleteEvent(id: number): Statement {
    return { sql: `DELETE FROM webhook_events WHERE id = ? AND ${NOT_WAITING}`, params: [id] };
  }
}
