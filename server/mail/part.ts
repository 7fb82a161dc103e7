/** Builds mail: the outbox that other domains fill, and its sender. */
import type { Logger } from 'pino';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { Job } from '../platform/background/jobs.ts';
import type { Clock } from '../platform/clock.ts';
import type { MasterKeys } from '../platform/master-key.ts';
import type { Membership } from '../platform/membership.ts';
import { type AlarmMailsDeps, tellAlarms } from './alarm-mails.ts';
import { MailQueue } from './mail-queue.ts';
import type { Mailer } from './mailer.ts';
import { Mails } from './mails.ts';
import { MailStore } from './mails-store.ts';
import { Outbox } from './outbox.ts';
import { mailRoutes } from './routes.ts';

const POLL_MS = 1000;
const MINUTE_MS = 60_000;
const SWEEP_MS = 3_600_000;
const KEPT_MS = 30 * 24 * 3_600_000;
/** The holder of this lease sends, including attempts in progress when the lease is about to move. */
const LEASE = 'mail';

export interface MailDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly base: {
    readonly metadata: Metadata;
    readonly membership: Membership;
    readonly keys: MasterKeys;
    readonly alarms: Alarms;
  };
  /** null: no mail server is set. */
  readonly mailer: Mailer | null;
  /** The sender's address. */
  readonly from: string;
  readonly alarmsOfAll: AlarmMailsDeps['alarms'];
  readonly mailUrl: () => string;
}

/** Builds mail; nothing is sent until `start`. */
export function mailPart({ clock, log, base, mailer, from, alarmsOfAll, mailUrl }: MailDeps) {
  const { metadata, membership, alarms, keys: sealer } = base;
  const mailStore = new MailStore({ reads: metadata });
  const wake = () => queue.wake();
  const shared = { changes: new Changes({ metadata }), mailStore, clock, sealer, wake };
  const outbox = new Outbox({ ...shared, isOn: mailer !== null });
  const queue = new MailQueue({
    ...shared,
    outbox,
    mailer,
    alarms,
    domain: from.split('@').at(-1) ?? 'localhost',
    mayBegin: (isBusy) => membership.holds(LEASE, isBusy),
    onError: (what, error) => log.error({ err: error }, what),
  });
  const mails = new Mails({ ...shared, server: mailer?.server ?? null, from });
  const tell = () => tellAlarms({ ...shared, outbox, alarms: alarmsOfAll, mailUrl });
  const sweep = () => shared.changes.store(mailStore.sweep(clock.now(), KEPT_MS));
  const jobs: Job[] = [
    { name: 'send mail', everyMs: POLL_MS, per: 'node', run: async () => queue.wake() },
    { name: 'mail alarms', everyMs: MINUTE_MS, per: 'cluster', run: tell },
    { name: 'sweep mail', everyMs: SWEEP_MS, per: 'cluster', run: sweep },
  ];
  return {
    outbox,
    routes: mailRoutes({ mails }),
    jobs,
    start: () => queue.start(),
    close: () => queue.close(),
  };
}
