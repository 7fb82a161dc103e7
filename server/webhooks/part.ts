/** Builds webhooks: subscriptions, deliveries and the dispatcher. */
import type { Logger } from 'pino';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import type { Job } from '../platform/jobs.ts';
import type { MasterKeys } from '../platform/master-key.ts';
import type { Membership } from '../platform/membership.ts';
import type { Outbound } from '../platform/outbound.ts';
import { Deliveries } from './deliveries.ts';
import { DeliveryStore } from './deliveries-store.ts';
import { Dispatcher } from './dispatcher.ts';
import { Retention } from './retention.ts';
import { webhookRoutes } from './routes.ts';
import { WebhookStore } from './store.ts';
import { Webhooks } from './webhooks.ts';

const POLL_MS = 1000;
const SWEEP_MS = 3_600_000;
/** Its holder delivers, including attempts in progress when the lease is about to move. */
const LEASE = 'webhooks';

export interface WebhooksDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly base: {
    readonly metadata: Metadata;
    readonly membership: Membership;
    readonly keys: MasterKeys;
    readonly outbound: Outbound;
  };
}

/** Builds webhooks; nothing is sent until `start`. */
export function webhooksPart({ clock, log, base }: WebhooksDeps) {
  const { metadata, membership, outbound } = base;
  const shared = {
    changes: new Changes({ metadata }),
    clock,
    sealer: base.keys,
    outbound,
    webhookStore: new WebhookStore(metadata),
    deliveryStore: new DeliveryStore(metadata),
    onError: (what: string, error: unknown) => log.error({ err: error }, what),
  };
  const retention = new Retention(shared);
  const mayBegin = (isBusy: boolean) => membership.holds(LEASE, isBusy);
  const dispatcher = new Dispatcher({ ...shared, retention, mayBegin });
  const webhooks = new Webhooks(shared);
  const deliveries = new Deliveries({ ...shared, webhooks, wake: () => dispatcher.wake() });
  const jobs: Job[] = [
    { name: 'deliver webhooks', everyMs: POLL_MS, per: 'node', run: async () => dispatcher.wake() },
    { name: 'sweep webhooks', everyMs: SWEEP_MS, per: 'cluster', run: () => retention.sweep() },
  ];
  return {
    routes: webhookRoutes({ webhooks, deliveries }),
    jobs,
    start: () => dispatcher.start(),
    stop: () => retention.stop(),
    close: () => dispatcher.close(),
  };
}
