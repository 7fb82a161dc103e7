/** Mail for administrators: whether it is sent, the results, and a test mail. */
import type { Call } from '../calls/principal.ts';
import type { Changes } from '../metadata/change.ts';
import { Listed, listRows } from '../metadata/list.ts';
import { type Clock, formatTime, formatTimeOrNull } from '../platform/clock.ts';
import { invalidField } from '../platform/errors.ts';
import { newId } from '../platform/ids.ts';
import type { Sealer } from '../platform/master-key.ts';
import type { MailRow, MailStore } from './mails-store.ts';
import { mailNotSet, sealMail } from './outbox.ts';
import type { Mail, MailStatus } from './schema.ts';

const TEST_LIFE_MS = 3600_000;
const ADDRESS = /^[^\s@<>,;:"\\]{1,64}@[^\s@<>,;:"\\]{1,190}$/u;

export interface MailsDeps {
  readonly changes: Changes;
  readonly mailStore: MailStore;
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** Host and port of the mail server; null: none is set. */
  readonly server: string | null;
  readonly from: string;
  readonly wake: () => void;
}

export class Mails {
  readonly #deps: MailsDeps;

  constructor(deps: MailsDeps) {
    this.#deps = deps;
  }

  async status(): Promise<MailStatus> {
    const { mailStore, server, from } = this.#deps;
    const counts = await mailStore.counts();
    const [pending, sent, failed] = ['pending', 'sent', 'failed'].map((state) => counts.get(state) ?? 0);
    const isOn = server !== null;
    const all = { pending: pending ?? 0, sent: sent ?? 0, failed: failed ?? 0 };
    return { enabled: isOn, server, from: isOn ? from : null, ...all };
  }

  /** Newest first, before row id `before` (0: from the newest on), at most `limit`. */
  async *list({ before, limit }: { readonly before: number; readonly limit: number }) {
    const { mailStore } = this.#deps;
    const page = { after: before === 0 ? Number.MAX_SAFE_INTEGER : before, limit };
    for await (const row of listRows(page, (last, size) => mailStore.list(last, size), 200))
      yield new Listed(row, describe(row));
  }

  /** Sends a test mail to this address. Throws `mail_not_set`, `invalid_request`. */
  async test(call: Call, to: string): Promise<Mail> {
    const { changes, mailStore, sealer, clock, server, wake } = this.#deps;
    if (server === null) throw mailNotSet();
    if (!ADDRESS.test(to) || /\p{Cc}/u.test(to)) throw invalidField('to', 'must be an e-mail address');
    const mailId = newId('mail', clock);
    const at = clock.now();
    const text = { subject: 'Test e-mail from Cloudlet', text: 'This cloud can send mail.\n' };
    const sealed = sealMail(sealer, mailId, text);
    const { accountId } = call.principal;
    const row = { mailId, accountId, kind: 'test', topic: '', recipient: to, sealed, at };
    return changes.run(call, (change) => {
      change.add(mailStore.insert({ ...row, expiresAt: at + TEST_LIFE_MS }));
      change.after(wake);
      const made = { mail_id: mailId, kind: 'test', recipient: to, state: 'pending', tries: 0 } as const;
      return describe({ ...made, reason: null, next_at: at, created_at: at, ended_at: null });
    });
  }
}

type Shown = Omit<MailRow, 'id' | 'account_id' | 'sealed' | 'expires_at'>;

function describe(row: Shown): Mail {
  return {
    id: row.mail_id,
    to: row.recipient,
    kind: row.kind,
    state: row.state === 'asked' ? 'pending' : row.state,
    reason: row.reason,
    tries: row.tries,
    created_at: formatTime(row.created_at),
    next_attempt_at: formatTimeOrNull(row.next_at),
    ended_at: formatTimeOrNull(row.ended_at),
  };
}
