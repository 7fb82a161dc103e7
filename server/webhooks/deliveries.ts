/** What was sent to a webhook, as its owner sees it; tests, replays and recoveries. */
import type { Principal } from '../accounts/principal.ts';
import { type Clock, formatTime, formatTimeOrNull, readTime } from '../clock.ts';
import { AppError } from '../errors.ts';
import { isId, newId } from '../ids.ts';
import { CommitRejected, type Metadata, type Statement } from '../metadata/metadata.ts';
import { noReceipt, type Receipt } from '../metadata/receipt.ts';
import type { AttemptRow, DeliveryRow, DeliveryStore } from './deliveries-store.ts';
import { writeEvent } from './events.ts';
import type { Delivery, Recovered } from './schema.ts';
import type { WebhookRow } from './store.ts';
import type { Webhooks } from './webhooks.ts';

export interface DeliveriesDeps {
  readonly metadata: Metadata;
  readonly deliveryStore: DeliveryStore;
  readonly webhooks: Webhooks;
  readonly clock: Clock;
  /** Something is due now. */
  readonly wake: () => void;
}

const LIST_STEP = 200;

export class Deliveries {
  readonly #deps: DeliveriesDeps;

  constructor(deps: DeliveriesDeps) {
    this.#deps = deps;
  }

  /**
   * At most `limit`, newest first, those before row id `before` (0: from the newest on). `id` is that row id,
   * for the cursor only. Throws `webhook_not_found`, before anything is listed.
   */
  async list(
    principal: Principal,
    webhookId: string,
    { before, limit }: { readonly before: number; readonly limit: number },
  ): Promise<AsyncGenerator<ListedDelivery>> {
    const webhook = await this.#deps.webhooks.findFor(principal, webhookId);
    return this.#list(webhook.id, before === 0 ? Number.MAX_SAFE_INTEGER : before, limit);
  }

  /** Sends a `webhook.test` to this webhook alone. Throws `webhook_not_found`, `webhook_disabled`. */
  async test(principal: Principal, webhookId: string, receipt: Receipt = noReceipt): Promise<Delivery> {
    const { metadata, deliveryStore, clock, wake } = this.#deps;
    const webhook = await this.#findEnabled(principal, webhookId);
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
    const insert = deliveryStore.insertDelivery({
      deliveryId: row.delivery_id,
      webhook: webhook.id,
      event: { rowIdOf: 0 },
      failed: null,
      at,
    });
    const answer = present(row, []);
    await metadata.commit([deliveryStore.insertSettledEvent(event), insert, ...receipt(answer)]);
    wake();
    return answer;
  }

  /**
   * Sends an event again, under the id it had. Throws `webhook_not_found`, `delivery_not_found`,
   * `webhook_disabled`.
   */
  async replay(
    principal: Principal,
    path: { readonly webhookId: string; readonly deliveryId: string },
    receipt: Receipt = noReceipt,
  ): Promise<Delivery> {
    const { deliveryStore, clock, wake } = this.#deps;
    const webhook = await this.#findEnabled(principal, path.webhookId);
    const row = isId('dlv', path.deliveryId)
      ? await deliveryStore.find(webhook.id, path.deliveryId)
      : undefined;
    if (row === undefined) throw deliveryNotFound();
    const now = clock.now();
    const again = { ...row, state: 'pending', reason: null, next_at: now } as const;
    const answer = present(again, await deliveryStore.attempts(row.id));
    await this.#commitTo([deliveryStore.replay(row.id, now), ...receipt(answer)]);
    wake();
    return answer;
  }

  /**
   * Sends everything again that failed since, oldest first. Throws `invalid_request`, `webhook_not_found`,
   * `webhook_disabled`.
   */
  async recover(principal: Principal, webhookId: string, since: string): Promise<Recovered> {
    const { metadata, deliveryStore, clock, wake } = this.#deps;
    const from = readTime('since', since);
    const webhook = await this.#findEnabled(principal, webhookId);
    const [result] = await metadata.commit([deliveryStore.replayFailed(webhook.id, from, clock.now())]);
    wake();
    return { recovered: result?.changes ?? 0 };
  }

  async *#list(webhook: number, before: number, limit: number): AsyncGenerator<ListedDelivery> {
    const { deliveryStore } = this.#deps;
    let last = before;
    let left = limit;
    while (left > 0) {
      const step = Math.min(left, LIST_STEP);
      const rows = await deliveryStore.list(webhook, last, step);
      for (const row of rows) yield new ListedDelivery(row, await deliveryStore.attempts(row.id));
      left -= rows.length;
      const end = rows.at(-1);
      if (rows.length < step || !end) return;
      last = end.id;
    }
  }

  async #findEnabled(principal: Principal, webhookId: string): Promise<WebhookRow> {
    const webhook = await this.#deps.webhooks.findFor(principal, webhookId);
    if (webhook.is_enabled === 1) return webhook;
    throw new AppError('webhook_disabled', `This webhook is disabled: ${webhook.disabled_message}`, {
      hint: 'Enable it first, with PATCH and {"enabled": true}',
    });
  }

  async #commitTo(statements: readonly Statement[]): Promise<void> {
    try {
      await this.#deps.metadata.commit(statements);
    } catch (error) {
      if (error instanceof CommitRejected && error.index === 0) throw deliveryNotFound();
      throw error;
    }
  }
}

/** A delivery with its place in the list. */
class ListedDelivery {
  readonly id: number;
  readonly #delivery: Delivery;

  constructor(row: DeliveryRow, attempts: readonly AttemptRow[]) {
    this.id = row.id;
    this.#delivery = present(row, attempts);
  }

  toJSON(): Delivery {
    return this.#delivery;
  }
}

function deliveryNotFound(): AppError {
  return new AppError('delivery_not_found', 'This webhook has no such delivery');
}

function present(row: DeliveryRow, attempts: readonly AttemptRow[]): Delivery {
  return {
    id: row.delivery_id,
    event_id: row.event_id,
    type: row.type,
    payload: JSON.parse(row.body),
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
