/** The part of the composition root that makes webhooks. */
import type { Logger } from 'pino';
import type { Config } from './config/config.ts';
import { SafeFetch } from './drivers/safe-fetch/safe-fetch.ts';
import { Changes } from './metadata/change.ts';
import type { Metadata } from './metadata/metadata.ts';
import type { Clock } from './platform/clock.ts';
import type { Jobs } from './platform/jobs.ts';
import type { MasterKeys } from './platform/master-key.ts';
import { Deliveries } from './webhooks/deliveries.ts';
import { DeliveryStore } from './webhooks/deliveries-store.ts';
import { Dispatcher } from './webhooks/dispatcher.ts';
import { LogSweeper } from './webhooks/log-sweeper.ts';
import { WebhookStore } from './webhooks/store.ts';
import { Webhooks } from './webhooks/webhooks.ts';

export interface WebhookParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly base: { readonly metadata: Metadata; readonly keys: MasterKeys };
}

/** Makes the parts; nothing is sent until `startWebhooks`. */
export function buildWebhooks({ config, clock, log, base }: WebhookParts) {
  const { metadata } = base;
  const outbound = new SafeFetch({
    clock,
    allowed: config.fetchAllow.split(',').filter((entry) => entry !== ''),
  });
  const shared = {
    changes: new Changes({ metadata }),
    clock,
    sealer: base.keys,
    outbound,
    webhookStore: new WebhookStore(metadata),
    deliveryStore: new DeliveryStore(metadata),
    report: (what: string, error: unknown) => log.error({ err: error }, what),
  };
  const dispatcher = new Dispatcher(shared);
  const webhooks = new Webhooks(shared);
  const deliveries = new Deliveries({ ...shared, webhooks, wake: () => dispatcher.wake() });
  return { webhooks, deliveries, dispatcher, sweeper: new LogSweeper(shared) };
}

const LOOK_MS = 1000;
const SWEEP_MS = 3_600_000;

/** Begins to send; only a server does, no operator's command. */
export function startWebhooks(
  { dispatcher, sweeper }: Pick<ReturnType<typeof buildWebhooks>, 'dispatcher' | 'sweeper'>,
  jobs: Jobs,
): void {
  dispatcher.start();
  jobs.every('deliver webhooks', LOOK_MS, async () => dispatcher.wake());
  jobs.every('sweep webhooks', SWEEP_MS, () => sweeper.sweep());
}
