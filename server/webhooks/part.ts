/** Builds webhooks: subscriptions, deliveries and the dispatcher. */
import type { Logger } from 'pino';
import { type ExportSource, jsonFile } from '../calls/account-export.ts';
import type { AuditEvent } from '../calls/audit.ts';
import { Changes } from '../metadata/change.ts';
import type { Metadata, Statement } from '../metadata/metadata.ts';
import type { Job } from '../platform/background/jobs.ts';
import type { Clock } from '../platform/clock.ts';
import type { MasterKeys } from '../platform/master-key.ts';
import type { Membership } from '../platform/membership.ts';
import type { Outbound } from '../platform/outbound.ts';
import { AuditEvents } from './audit-events.ts';
import { Deliveries } from './deliveries.ts';
import { DeliveryStore } from './deliveries-store.ts';
import { Dispatcher } from './dispatcher.ts';
import { Retention } from './retention.ts';
import { webhookRoutes } from './routes.ts';
import { WebhookStore } from './store.ts';
import { Webhooks } from './webhooks.ts';

const POLL_MS = 1000;
const SWEEP_MS = 3_600_000;
/** The holder of this lease delivers, including attempts in progress when the lease is about to move. */
const LEASE = 'webhooks';

export interface WebhooksDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** See AuditEventsDeps. */
  readonly announceBy: (make: ((event: AuditEvent) => readonly Statement[]) | null) => void;
  readonly base: {
    readonly metadata: Metadata;
    readonly membership: Membership;
    readonly keys: MasterKeys;
    readonly outbound: Outbound;
  };
}

/** Builds webhooks; nothing is sent until `start`. */
export async function webhooksPart({ clock, log, base, announceBy }: WebhooksDeps) {
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
  const auditEvents = new AuditEvents({ webhookStore: shared.webhookStore, announceBy });
  await auditEvents.refresh();
  const onHearing = () =>
    auditEvents
      .refresh()
      .catch((error: unknown) => shared.onError('loading the webhooks of audit entries failed', error));
  const webhooks = new Webhooks({ ...shared, onHearing });
  const deliveries = new Deliveries({ ...shared, webhooks, wake: () => dispatcher.wake() });
  const jobs: Job[] = [
    { name: 'deliver webhooks', everyMs: POLL_MS, per: 'node', run: async () => dispatcher.wake() },
    // Webhooks and administrators change at other nodes too.
    {
      name: 'reload webhooks of audit entries',
      everyMs: POLL_MS,
      per: 'node',
      run: () => auditEvents.refresh(),
    },
    { name: 'sweep webhooks', everyMs: SWEEP_MS, per: 'cluster', run: () => retention.sweep() },
  ];
  return {
    routes: webhookRoutes({ webhooks, deliveries }),
    exported: exportedWebhooks(webhooks),
    jobs,
    start: () => dispatcher.start(),
    stop: () => retention.stop(),
    close: () => dispatcher.close(),
  };
}

/** The webhooks of an account in an export, without their secrets. */
function exportedWebhooks(webhooks: Webhooks): ExportSource {
  return {
    async *files({ owner }) {
      const all = await Array.fromAsync(webhooks.list(owner, 0, Number.POSITIVE_INFINITY));
      yield jsonFile('webhooks.json', all);
    },
  };
}
