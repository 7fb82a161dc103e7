/**
 * Sends the mails in the outbox, with the same loop as webhooks. A kill between an attempt and its
 * commit repeats the attempt with the same Message-ID. When the server fails, an alarm is raised
 * until it accepts a mail.
 */
import { BACKGROUND, type Changes } from '../metadata/change.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import type { Sealer } from '../platform/master-key.ts';
import { retryDelayMs } from '../resources/retry-schedule.ts';
import { isDue, SendingLoop } from '../resources/sending-loop.ts';
import { type Mailer, MailRefused } from './mailer.ts';
import type { MailRow, MailStore } from './mails-store.ts';
import { type MailText, type Outbox, openMail, sealMail } from './outbox.ts';

export interface MailQueueDeps {
  readonly changes: Changes;
  readonly mailStore: MailStore;
  readonly outbox: Pick<Outbox, 'answererOf'>;
  /** null: no mail server is set, and nothing is sent. */
  readonly mailer: Mailer | null;
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly alarms: Alarms;
  /** The part of a Message-ID after the @. */
  readonly domain: string;
  /** Whether this node of a cluster sends; `isBusy`: attempts are in progress. */
  readonly mayBegin: (isBusy: boolean) => Promise<boolean>;
  readonly onError: (what: string, error: unknown) => void;
}

export const MAIL_ALARM = 'mail_failing';

const ASKED_BATCH = 20;
const NOBODY = 'it had no recipient';
const TOO_OLD = 'it was no longer needed';
const UNREADABLE = 'it cannot be decrypted';
const MAX_REASON = 300;
/** Pause after a request that could not be answered. */
const HELD_MS = 60_000;

export class MailQueue extends SendingLoop {
  readonly #deps: MailQueueDeps;
  /** Requests that could not be answered → end of their pause, monotonic. */
  readonly #held = new Map<number, number>();

  constructor(deps: MailQueueDeps) {
    const mayBegin = async (isBusy: boolean) => {
      const may = await deps.mayBegin(isBusy);
      // The alarm belongs to the node that sends.
      if (!may) deps.alarms.clear(MAIL_ALARM);
      return may;
    };
    super('mail', { ...deps, mayBegin });
    this.#deps = deps;
  }

  /** Does nothing without a mail server. */
  override start(): void {
    if (this.#deps.mailer !== null) super.start();
  }

  /** Determines the mails for people who requested one by an address; false: there was no request. */
  protected override async prepare(): Promise<boolean> {
    const { mailStore, clock, onError } = this.#deps;
    for (const [id, until] of this.#held) if (until <= clock.monotonic()) this.#held.delete(id);
    const found = await mailStore.asked(ASKED_BATCH + this.#held.size);
    const rows = found.filter(({ id }) => !this.#held.has(id)).slice(0, ASKED_BATCH);
    for (const row of rows) {
      try {
        await this.#answer(row);
      } catch (error) {
        // The requests of others go on.
        this.#held.set(row.id, clock.monotonic() + HELD_MS);
        onError('preparing a requested mail failed; it will be repeated', error);
      }
    }
    return rows.length > 0;
  }

  #answer(row: MailRow): Promise<void> {
    const { changes, mailStore, outbox, clock, sealer } = this.#deps;
    return changes.run(BACKGROUND, async (change) => {
      const at = clock.now();
      const answerer = row.expires_at > at ? outbox.answererOf(row.kind) : undefined;
      const text = (await answerer?.(change, row.recipient)) ?? null;
      if (text === null) {
        change.expect(mailStore.end(row.id, { state: 'failed', reason: NOBODY, at }), 'skip');
        return;
      }
      const sealed = sealMail(sealer, row.mail_id, text);
      change.expect(mailStore.answer(row.id, { accountId: text.accountId, sealed, at }), 'skip');
    });
  }

  protected override nextOfEach() {
    return this.#deps.mailStore.nextOfEach();
  }

  protected override async attempt(receiver: number, signal: AbortSignal): Promise<number> {
    const { mailStore, changes, clock, mailer } = this.#deps;
    const row = await mailStore.nextOf(receiver);
    if (mailer === null || row === undefined || !isDue(row.next_at ?? 0, clock.now())) return 0;
    const after = await this.#send(mailer, row, signal);
    // The mail may have been given up in the meantime.
    await changes.store([after], 'skip');
    return 0;
  }

  /** The statement that stores the result. Rejects only when `signal` was aborted. */
  async #send(mailer: Mailer, row: MailRow, signal: AbortSignal) {
    const { mailStore, clock, domain } = this.#deps;
    const failed = (reason: string) =>
      mailStore.end(row.id, { state: 'failed', reason: reason.slice(0, MAX_REASON), at: clock.now() });
    if (row.expires_at <= clock.now()) return failed(TOO_OLD);
    const text = this.#open(row);
    if (text === null) return failed(UNREADABLE);
    try {
      await mailer.send({ ...text, to: row.recipient, messageId: `${row.mail_id}@${domain}` }, signal);
      this.#deps.alarms.clear(MAIL_ALARM);
      return mailStore.end(row.id, { state: 'sent', reason: null, at: clock.now() });
    } catch (error) {
      signal.throwIfAborted();
      const said = (error as Error).message;
      // The server's reply is trusted: it knows the address better.
      if (error instanceof MailRefused) return failed(said);
      this.#raise(mailer, said);
      const delay = retryDelayMs({ tries: row.tries + 1, retryAfterMs: null });
      if (delay === null) return failed(said);
      return mailStore.putOff(row, { at: clock.now() + delay, reason: said.slice(0, MAX_REASON) });
    }
  }

  /** null: it was sealed with a master key that no longer exists, so no later attempt opens it. */
  #open({ mail_id, sealed }: MailRow): MailText | null {
    try {
      return sealed === null ? null : openMail(this.#deps.sealer, mail_id, sealed);
    } catch (error) {
      this.#deps.onError('a mail cannot be decrypted', error);
      return null;
    }
  }

  #raise({ server }: Mailer, said: string): void {
    const detail = `The mail server ${server} accepts no mail: ${said}`;
    this.#deps.alarms.raise(
      MAIL_ALARM,
      detail,
      'Check CLOUDLET_SMTP_URL and the server; Cloudlet retries automatically',
    );
  }
}
