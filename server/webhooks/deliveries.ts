/** Deliveries of a webhook as shown to its owner; tests, replays and recoveries. */
import type { Call, Principal } from '../calls/principal.ts';
import type { Changes } from '../metadata/change.ts';
import { Listed, listRows } from '../metadata/list.ts';
import { type Clock, formatTime, formatTimeOrNull, readTime } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { isId, newId } from '../platform/ids.ts';
import { maySee } from './audit-events.ts';
import type { AttemptRow, DeliveryPage, DeliveryRow, DeliveryStore } from './deliveries-store.ts';
import { writeEvent } from './events-store.ts';
import { MAX_PENDING } from './retention.ts';
import type { Delivery, Recovered } from './schema.ts';
import type { WebhookRow } from './store.ts';
import { type Webhooks, webhookNotFound } from './webhooks.ts';

export interface DeliveriesDeps {
  readonly changes: Changes;
  readonly deliveryStore: DeliveryStore;
  readonly webhooks: Webhooks;
  readonly clock: Clock;
  /** Called when a delivery is due now. */
  readonly wake: () => void;
  /** Default: MAX_PENDING. */
  readonly maxPending?: number;
}

const LIST_STEP = 200;

export class Deliveries {
  readonly #deps: DeliveriesDeps;

  constructor(deps: DeliveriesDeps) {
    this.#deps = deps;
  }

  /**
   * At most `limit`, newest first, before row id `before` (0: from the newest on), in one `state` or any.
   * `id` is that row id, for the cursor only. Throws `webhook_not_found`, before anything is listed.
   */
  async list(
    principal: Principal,
    webhookId: string,
    { before, limit, state }: DeliveryPage,
  ): Promise<AsyncGenerator<Listed<DeliveryRow, Delivery>>> {
    const webhook = await this.#deps.webhooks.findFor(principal, webhookId);
    const page = { after: before === 0 ? Number.MAX_SAFE_INTEGER : before, limit };
    const { deliveryStore } = this.#deps;
    const rows = listRows(
      page,
      (last, size) => deliveryStore.list(webhook.id, { before: last, limit: size, state }),
      LIST_STEP,
    );
    return this.#present(principal, rows);
  }

  /**
   * Sends a `webhook.test` to this webhook alone. Throws `webhook_not_found`, `webhook_disabled`,
   * and `overloaded` at the limit of pending deliveries.
   */
  async test(call: Call, webhookId: string): Promise<Delivery> {
    const { changes, deliveryStore, clock, wake } = this.#deps;
    const webhook = await this.#findEnabled(call.principal, webhookId);
    const at = clock.now();
    const event = writeEvent({
      accountId: webhook.account_id,
      type: 'webhook.test',
      at,
      data: { webhook_id: webhookId, message: 'It works' },
    });
    const row: DeliveryRow = {
      id: 0,
      delivery_id: newId('dlv', clock),
      webhook: webhook.id,
      event_id: event.eventId,
      type: event.type,
      body: event.body,
      state: 'pending',
      reason: null,
      tries: 0,
      next_at: at,
      created_at: at,
    };
    return changes.run(call, (change) => {
      const stored = change.add(deliveryStore.insertResolvedEvent(event));
      const delivery = { deliveryId: row.delivery_id, webhook: webhook.id, event: stored, failed: null, at };
      change.add(deliveryStore.insertDelivery(delivery), webhookNotFound);
      change.addAll(deliveryStore.expectPending(webhook.id, this.#maxPending), () => this.#full());
      change.after(wake);
      return present(call.principal, row, []);
    });
  }

  /**
   * Sends an event again, with the same id. Throws `webhook_not_found`, `delivery_not_found`,
   * `webhook_disabled`, and `overloaded` at the limit of pending deliveries.
   */
  replay(
    call: Call,
    { webhookId, deliveryId }: { readonly webhookId: string; readonly deliveryId: string },
  ): Promise<Delivery> {
    const { changes, deliveryStore, clock, wake } = this.#deps;
    return changes.run(call, async (change) => {
      const webhook = await this.#findEnabled(call.principal, webhookId);
      const row = isId('dlv', deliveryId) ? await deliveryStore.find(webhook.id, deliveryId) : undefined;
      if (row === undefined) throw deliveryNotFound();
      const now = clock.now();
      change.expect(deliveryStore.replay(row.id, now), deliveryNotFound);
      change.addAll(deliveryStore.expectPending(webhook.id, this.#maxPending), () => this.#full());
      change.after(wake);
      const again = { ...row, state: 'pending', reason: null, next_at: now } as const;
      return present(call.principal, again, await deliveryStore.attempts(row.id));
    });
  }

  /**
   * Retries deliveries that failed since a time, oldest first, up to the limit of pending ones; the
   * response says how many are left. Throws `invalid_request`, `webhook_not_found`,
   * `webhook_disabled`.
   */
  recover(call: Call, webhookId: string, since: string): Promise<Recovered> {
    const { changes, deliveryStore, clock, wake } = this.#deps;
    const from = readTime('since', since);
    return changes.run(call, async (change) => {
      const { id } = await this.#findEnabled(call.principal, webhookId);
      const failed = await deliveryStore.countFailed(id, from);
      const room = Math.max(0, this.#maxPending - (await deliveryStore.countPending(id)));
      const recovered = Math.min(failed, room);
      const replay = deliveryStore.replayFailed(id, { since: from, most: room, now: clock.now() });
      change.add({ ...replay, expectChanges: recovered }, 'retry');
      change.after(wake);
      return { recovered, remaining: failed - recovered };
    });
  }

  get #maxPending(): number {
    return this.#deps.maxPending ?? MAX_PENDING;
  }

  #full(): AppError {
    return new AppError('overloaded', `A webhook can have at most ${this.#maxPending} pending deliveries`, {
      hint: 'Try again when the receiver has accepted some deliveries, or disable the webhook to fail all pending deliveries',
    });
  }

  async *#present(
    principal: Principal,
    rows: AsyncIterable<DeliveryRow>,
  ): AsyncGenerator<Listed<DeliveryRow, Delivery>> {
    for await (const row of rows) {
      yield new Listed(row, present(principal, row, await this.#deps.deliveryStore.attempts(row.id)));
    }
  }

  async #findEnabled(principal: Principal, webhookId: string): Promise<WebhookRow> {
    const webhook = await this.#deps.webhooks.findFor(principal, webhookId);
    if (webhook.is_enabled === 1) return webhook;
    throw new AppError('webhook_disabled', `This webhook is disabled: ${webhook.disabled_message}`, {
      hint: 'Enable it first, with PATCH and {"enabled": true}',
    });
  }
}

function deliveryNotFound(): AppError {
  return new AppError('delivery_not_found', 'There is no such delivery of this webhook');
}

function present(principal: Principal, row: DeliveryRow, attempts: readonly AttemptRow[]): Delivery {
  return {
    id: row.delivery_id,
    event_id: row.event_id,
    type: row.type,
    payload: maySee(principal, row) ? JSON.parse(row.body) : null,
    state: row.state,
    reason: row.reason,
    created_at: formatTime(row.created_at),
    next_attempt_at: formatTimeOrNull(row.next_at),
    attempts: attempts.map(({ at, status, duration_ms, response, error }) => ({
      at: formatTime(at),
      status,
      duration_ms,
      response,
      error,
    })),
  };
}
