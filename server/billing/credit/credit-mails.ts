/** Warnings of credits, by mail to accounts that want them. */
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
  const left = `Credits left: ${data.credits}.`;
  const place = `${url}/billing\n`;
  if (type === 'credits.restored')
    return { subject: 'Your account has credits again', text: `${left}\n\n${place}` };
  if (type === 'credits.exhausted') {
    const end = data.grace_ends_at;
    const stop = end === undefined ? 'Its machines are stopped.' : `Its machines run until ${end} UTC.`;
    return { subject: 'Your account has no credits left', text: `${left} ${stop}\n\n${place}` };
  }
  const hours = data.hours_left === null ? '' : ` At the current usage they last ${data.hours_left} hours.`;
  return { subject: 'Your account is running out of credits', text: `${left}${hours}\n\n${place}` };
}
