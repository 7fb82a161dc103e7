/** Webhook services on a real database, with a fake clock. For tests. */
import type { Principal } from '../calls/principal.ts';
import { SafeFetch } from '../drivers/safe-fetch/safe-fetch.ts';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { systemClock } from '../platform/clock.ts';
import { Deliveries } from '../webhooks/deliveries.ts';
import { DeliveryStore } from '../webhooks/deliveries-store.ts';
import { Dispatcher } from '../webhooks/dispatcher.ts';
import { eventStatements } from '../webhooks/events-store.ts';
import { Retention } from '../webhooks/retention.ts';
import type { Delivery } from '../webhooks/schema.ts';
import { WebhookStore } from '../webhooks/store.ts';
import { Webhooks } from '../webhooks/webhooks.ts';
import { newPrincipal, openAccountFixture } from './account-fixture.ts';

export interface WebhookOptions {
  /** Networks to which deliveries are allowed; default: loopback. */
  readonly allowed?: readonly string[];
  /** Pending deliveries of a webhook; default: 50. */
  readonly maxPending?: number;
  readonly keptDeliveries?: number;
  /** Wraps the stores, so that they can fail. */
  readonly wrapMetadata?: (metadata: Metadata) => Metadata;
  /** See DispatcherDeps. */
  readonly mayBegin?: (isBusy: boolean) => Promise<boolean>;
}

export type WebhookFixture = Awaited<ReturnType<typeof openWebhookFixture>>;

/** The fixture itself remains; `open` starts Cloudlet in it. */
export async function openWebhookFixture() {
  const fixture = await openAccountFixture();
  const { clock, accounts } = fixture;
  let events = 0;
  const open = (options: WebhookOptions = {}) => {
    const metadata = options.wrapMetadata?.(fixture.metadata) ?? fixture.metadata;
    const reports: string[] = [];
    const shared = {
      changes: new Changes({ metadata }),
      clock,
      sealer: fixture.sealer,
      webhookStore: new WebhookStore(metadata),
      deliveryStore: new DeliveryStore(metadata),
      outbound: new SafeFetch({ clock: systemClock, allowed: options.allowed ?? ['127.0.0.0/8'] }),
      onError: (what: string, error: unknown) => void reports.push(`${what}: ${error}`),
    };
    const { maxPending = 50 } = options;
    const { keptDeliveries } = options;
    const sweeper = new Retention({ ...shared, ...(keptDeliveries && { keptDeliveries }) });
    const mayBegin = options.mayBegin ?? (async () => true);
    const dispatcher = new Dispatcher({ ...shared, maxPending, retention: sweeper, mayBegin });
    const webhooks = new Webhooks({ ...shared, onHearing: async () => {} });
    const deliveries = new Deliveries({ ...shared, maxPending, webhooks, wake: () => dispatcher.wake() });
    /** Newest first. */
    const log = async (principal: Principal, webhookId: string): Promise<Delivery[]> => {
      const page = { before: 0, limit: Infinity };
      const found: Delivery[] = [];
      for await (const entry of await deliveries.list(principal, webhookId, page)) found.push(entry.toJSON());
      return found;
    };
    return { sweeper, dispatcher, webhooks, deliveries, reports, log };
  };
  return {
    clock,
    open,
    metadata: fixture.metadata,
    /** A new account, as the principal of its key. */
    newPrincipal: (username: string) => newPrincipal(accounts, username),
    /** Commits an event with a new number; returns the number. */
    async emit({ accountId }: Principal, type: 'vm.stopped' | 'credits.low' = 'vm.stopped'): Promise<number> {
      const number = ++events;
      await fixture.metadata.commit(eventStatements({ accountId, type, data: { number }, at: clock.now() }));
      return number;
    },
    close: () => fixture.close(),
  };
}
