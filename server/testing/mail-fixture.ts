/** Mail on a real database, with a fake clock and a given server. For tests. */
import { parseSmtpUrl } from '../config/mail-settings.ts';
import { SmtpMailer } from '../drivers/smtp/smtp-mailer.ts';
import { MailQueue } from '../mail/mail-queue.ts';
import { Mails } from '../mail/mails.ts';
import { MailStore } from '../mail/mails-store.ts';
import { Outbox } from '../mail/outbox.ts';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { Alarms } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import type { Sealer } from '../platform/master-key.ts';

const MAIL_FROM = { name: 'The cloud', address: 'cloud@example.org' };

interface MailFixtureOptions {
  readonly metadata: Metadata;
  readonly clock: Clock;
  readonly sealer: Sealer;
  /** URL of the mail server; empty: none. */
  readonly url: string;
  readonly silenceMs?: number;
  readonly totalMs?: number;
  readonly mayBegin?: (isBusy: boolean) => Promise<boolean>;
}

/** A start of the mail services. */
export function openMailFixture(options: MailFixtureOptions) {
  const { metadata, clock, sealer, url, mayBegin = async () => true, ...limits } = options;
  const server = url === '' ? undefined : parseSmtpUrl(url);
  const mailer = server === undefined ? null : new SmtpMailer({ server, from: MAIL_FROM, ...limits });
  const mailStore = new MailStore({ reads: metadata });
  const alarms = new Alarms(clock);
  const reports: string[] = [];
  const wake = () => queue.wake();
  const shared = { changes: new Changes({ metadata }), mailStore, clock, sealer, wake };
  const outbox = new Outbox({ ...shared, isOn: mailer !== null });
  const queue: MailQueue = new MailQueue({
    ...shared,
    outbox,
    mailer,
    alarms,
    mayBegin,
    domain: 'example.org',
    onError: (what, error) => void reports.push(`${what}: ${error}`),
  });
  const mails = new Mails({ ...shared, server: mailer?.server ?? null, from: MAIL_FROM.address });
  const list = async () => {
    const found = [];
    for await (const entry of mails.list({ before: 0, limit: Infinity })) found.push(entry.toJSON());
    return found;
  };
  return { outbox, queue, mails, mailStore, alarms, reports, list };
}
