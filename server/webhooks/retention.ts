/** Removes what webhooks no longer need: old events and deliveries, and secrets that sign no longer. */
import type { Changes } from '../metadata/change.ts';
import type { Clock } from '../platform/clock.ts';
import type { DeliveryStore } from './deliveries-store.ts';
import type { WebhookStore } from './store.ts';

export interface RetentionDeps {
  readonly changes: Changes;
  readonly webhookStore: WebhookStore;
  readonly deliveryStore: DeliveryStore;
  readonly clock: Clock;
  /** Deliveries of one webhook; 10,000 without it. */
  readonly keptDeliveries?: number;
}

const KEPT_MS = 30 * 24 * 3_600_000;
const KEPT_DELIVERIES = 10_000;
const BATCH = 200;

export class Retention {
  readonly #deps: RetentionDeps;
  #isStopped = false;

  constructor(deps: RetentionDeps) {
    this.#deps = deps;
  }

  /** Ends a sweep under way soon. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Removes events of more than 30 days, deliveries of a webhook beyond its newest 10,000, webhooks of closed
   * accounts, and secrets that sign no longer. What still waits to be delivered stays.
   */
  async sweep(): Promise<void> {
    const { changes, webhookStore, deliveryStore, clock } = this.#deps;
    const { keptDeliveries: kept = KEPT_DELIVERIES } = this.#deps;
    const now = clock.now();
    await changes.store([webhookStore.forgetOldSecrets(now), webhookStore.deleteOfClosedAccounts()]);
    await this.#removeOld(now - KEPT_MS);
    for (const webhook of await deliveryStore.crowded(kept)) await this.#removeBeyond(webhook, kept);
  }

  /** In commits that others need not wait for long. */
  async #removeOld(before: number): Promise<void> {
    const { changes, deliveryStore } = this.#deps;
    for (;;) {
      const old = await deliveryStore.oldEvents(before, BATCH);
      await changes.store(old.map(({ id }) => deliveryStore.deleteEvent(id)));
      if (old.length < BATCH || this.#isStopped) return;
    }
  }

  async #removeBeyond(webhook: number, kept: number): Promise<void> {
    const { changes, deliveryStore } = this.#deps;
    for (;;) {
      const rows = await deliveryStore.beyond(webhook, { kept, limit: BATCH });
      await changes.store(rows.flatMap((row) => deliveryStore.deleteDelivery(row)));
      if (rows.length < BATCH || this.#isStopped) return;
    }
  }
}
