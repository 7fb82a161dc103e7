/** Limits the number of stored events and deliveries. */
import type { Changes } from '../metadata/change.ts';
import type { Clock } from '../platform/clock.ts';
import type { DeliveryStore } from './deliveries-store.ts';
import type { WebhookStore } from './store.ts';

export interface RetentionDeps {
  readonly changes: Changes;
  readonly webhookStore: WebhookStore;
  readonly deliveryStore: DeliveryStore;
  readonly clock: Clock;
  /** Maximum deliveries of one webhook; default: 10,000. */
  readonly keptDeliveries?: number;
  /** Maximum of all webhooks of an account, in equal shares; default: 50,000. */
  readonly keptOfAccount?: number;
}

/** Maximum pending deliveries of a webhook; one more event fails the oldest. */
export const MAX_PENDING = 1000;
const KEPT_MS = 30 * 24 * 3_600_000;
const KEPT_DELIVERIES = 10_000;
const KEPT_OF_ACCOUNT = 50_000;
const BATCH = 200;
/** A log is trimmed each time it has grown by this number. */
const GROWTH = 100;
const MAX_GROWING = 10_000;

export class Retention {
  readonly #deps: RetentionDeps;
  /** Webhook → deliveries since its log was last trimmed. */
  readonly #grown = new Map<number, number>();
  #isStopped = false;

  constructor(deps: RetentionDeps) {
    this.#deps = deps;
  }

  /** Stops a running sweep soon. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Removes events older than 30 days, deliveries of a webhook beyond its newest, webhooks of closed
   * accounts, and expired secrets. Pending deliveries stay.
   */
  async sweep(): Promise<void> {
    const { changes, webhookStore, deliveryStore, clock } = this.#deps;
    const now = clock.now();
    await changes.store([webhookStore.forgetOldSecrets(now), webhookStore.deleteOfClosedAccounts()]);
    await this.#removeOld(now - KEPT_MS);
    const { keptDeliveries = KEPT_DELIVERIES } = this.#deps;
    for (const webhook of await deliveryStore.crowded(keptDeliveries)) await this.#cut(webhook);
  }

  /** Call after deliveries were added to a webhook: a flood must not wait for the next sweep. */
  async added(webhook: number, deliveries: number): Promise<void> {
    const grown = (this.#grown.get(webhook) ?? 0) + deliveries;
    // The sweep trims webhooks dropped here.
    if (this.#grown.size >= MAX_GROWING) this.#grown.clear();
    if (grown < GROWTH) {
      this.#grown.set(webhook, grown);
      return;
    }
    this.#grown.delete(webhook);
    await this.#cut(webhook);
  }

  /** Uses small commits, so that other commits are not delayed. */
  async #removeOld(before: number): Promise<void> {
    const { changes, deliveryStore } = this.#deps;
    for (;;) {
      const old = await deliveryStore.oldEvents(before, BATCH);
      await changes.store(old.map(({ id }) => deliveryStore.deleteEvent(id)));
      if (old.length < BATCH || this.#isStopped) return;
    }
  }

  async #cut(webhook: number): Promise<void> {
    const { changes, deliveryStore } = this.#deps;
    const { keptDeliveries = KEPT_DELIVERIES, keptOfAccount = KEPT_OF_ACCOUNT } = this.#deps;
    const share = Math.floor(keptOfAccount / Math.max(1, await deliveryStore.siblings(webhook)));
    const kept = Math.min(keptDeliveries, share);
    for (;;) {
      const rows = await deliveryStore.beyond(webhook, { kept, limit: BATCH });
      await changes.store(rows.flatMap((row) => deliveryStore.deleteDelivery(row)));
      if (rows.length < BATCH || this.#isStopped) return;
    }
  }
}
