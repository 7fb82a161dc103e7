/** Warnings of credits and of the spend cap, by mail to accounts that want them. */
import type { MailText, Outbox } from '../../mail/outbox.ts';
import type { CreditStatesDeps } from './credit-state.ts';

type Announce = CreditStatesDeps['announce'];
type CreditNews = Parameters<Announce>[0];

const LIFE_MS = 24 * 3600_000;

/** `announce`, with a mail in the same commit. `url`: of the console. */
export function announceByMail(announce: Announce, outbox: Outbox, url: () => string): Announce {
  return (event) => [
    ...announce(event),
    ...outbox.tell({
      ...creditMail(event, url()),
      accountId: event.accountId,
      about: 'credits',
      topic: event.type,
      lifeMs: LIFE_MS,
    }),
  ];
}

function creditMail({ type, data }: Pick<CreditNews, 'type' | 'data'>, url: string): MailText {
  const place = `${url}/billing\n`;
  if (type.startsWith('billing.')) return spendMail({ type, data }, place);
  const left = `Credits left: ${data.credits}.`;
  if (type === 'credits.restored')
    return { subject: 'Your account has credits again', text: `${left}\n\n${place}` };
  if (type === 'credits.exhausted') {
    const end = data.grace_ends_at;
    const stop = end === undefined ? 'Your machines are stopped.' : `Your machines run until ${end} UTC.`;
    return { subject: 'Your account has no credits left', text: `${left} ${stop}\n\n${place}` };
  }
  const hours =
    data.hours_left === null ? '' : ` At the current usage, the credits last ${data.hours_left} hours.`;
  return { subject: 'Your account is running out of credits', text: `${left}${hours}\n\n${place}` };
}

function spendMail({ type, data }: Pick<CreditNews, 'type' | 'data'>, place: string): MailText {
  const { month, cap, spent, percent, resets_at: resetsAt } = data;
  const sums = `Spent in ${month}: ${spent} credits.`;
  if (type === 'billing.spend_cap_lifted') {
    const text = `${sums} Machines and databases stopped by the spend cap are starting again.`;
    return { subject: 'Your account is below its spend cap again', text: `${text}\n\n${place}` };
  }
  const of = `${sums} Your spend cap: ${cap} credits.`;
  if (type === 'billing.spend_warning') {
    const text = `${of} At the cap, machines and databases are stopped; nothing is deleted.`;
    return { subject: `Your account has spent ${percent} % of its spend cap`, text: `${text}\n\n${place}` };
  }
  const text =
    `${of} Machines and databases are stopped and nothing new can be created; nothing is deleted. ` +
    `Machines and databases start again when the cap is raised, or at ${resetsAt} UTC.`;
  return { subject: 'Your account has reached its spend cap', text: `${text}\n\n${place}` };
}
