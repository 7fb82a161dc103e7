/** Mail with its server, as the settings say. */
import { parseMailFrom, parseSmtpUrl } from '../config/mail-settings.ts';
import { SmtpMailer } from '../drivers/smtp/smtp-mailer.ts';
import { mailPart } from '../mail/part.ts';
import { alarmsOfAll } from '../status/visible-alarms.ts';
import type { BuildOptions } from './cloud.ts';
import type { Foundations } from './foundations.ts';

type MailOptions = Pick<BuildOptions, 'config' | 'clock' | 'log'> & {
  readonly base: Foundations;
  readonly mailUrl: () => string;
};

export function buildMail(options: MailOptions) {
  const { base } = options;
  const { smtpUrl, mailFrom } = options.config;
  const from = mailFrom === '' ? { name: '', address: 'cloudlet@localhost' } : parseMailFrom(mailFrom);
  const mailer = smtpUrl === '' ? null : new SmtpMailer({ server: parseSmtpUrl(smtpUrl), from });
  const alarms = () => alarmsOfAll(base.alarms, base.membership);
  return mailPart({ ...options, mailer, from: from.address, alarmsOfAll: alarms });
}
