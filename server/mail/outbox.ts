/**
 * The outbox that other domains use: they add a mail to the commit of the change it reports, and it
 * is sent once the commit is on disk. Without a mail server nothing is added.
 */
import type { Change } from '../metadata/change.ts';
import type { Statement } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { newId } from '../platform/ids.ts';
import type { Sealer } from '../platform/master-key.ts';
import type { MailStore } from './mails-store.ts';

export interface MailText {
  readonly subject: string;
  readonly text: string;
}

export interface NewMail extends MailText {
  /** Mails of one account are sent in sequence; 0: no account. */
  readonly accountId: number;
  readonly kind: string;
  readonly to: string;
  /** Time after which it is useless. */
  readonly lifeMs: number;
}

/** Maximum mails of a kind within a time. */
export interface MailLimit {
  /** To one address. */
  readonly most: number;
  /** For one account, to all addresses. */
  readonly mostOfAccount: number;
  readonly withinMs: number;
}

/** Subjects that an account may want mail about. */
export type MailAbout = 'credits' | 'alarms';

/**
 * Determines the mail to send when someone requested one by an address, and adds statements to the
 * commit. Null: no mail.
 */
export type Answerer = (
  change: Change,
  recipient: string,
) => Promise<(MailText & { readonly accountId: number }) | null>;

export interface OutboxDeps {
  readonly mailStore: MailStore;
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** A mail server is set. */
  readonly isOn: boolean;
  readonly wake: () => void;
}

export class Outbox {
  readonly #deps: OutboxDeps;
  readonly #answerers = new Map<string, Answerer>();

  constructor(deps: OutboxDeps) {
    this.#deps = deps;
  }

  /** Whether this cloud sends mail. */
  get isOn(): boolean {
    return this.#deps.isOn;
  }

  /** Throws `mail_not_set`. */
  assertOn(): void {
    if (!this.isOn) throw mailNotSet();
  }

  /** Whether mailUpTo() takes one more, unless others come first. */
  async mayMail(
    { kind, to, accountId }: Pick<NewMail, 'kind' | 'to' | 'accountId'>,
    { most, mostOfAccount, withinMs }: MailLimit,
  ): Promise<boolean> {
    const { mailStore, clock } = this.#deps;
    const since = clock.now() - withinMs;
    if ((await mailStore.countSince(kind, to, since)) >= most) return false;
    return (await mailStore.countOfAccount(kind, accountId, since)) < mostOfAccount;
  }

  /** Reports that a commit with mail is stored, so that it is sent at once. */
  wake(): void {
    this.#deps.wake();
  }

  /** Adds a mail to a commit. */
  mail(mail: NewMail): Statement[] {
    const { mailStore, isOn } = this.#deps;
    return isOn ? [mailStore.insert(this.#rowOf(mail))] : [];
  }

  /** The same, up to a limit: beyond, the commit is refused. */
  mailUpTo(mail: NewMail, { withinMs, ...limit }: MailLimit): Statement[] {
    const { mailStore, clock } = this.#deps;
    return mailStore.insertUpTo(this.#rowOf(mail), { ...limit, since: clock.now() - withinMs });
  }

  #rowOf({ accountId, kind, to, lifeMs, subject, text }: NewMail) {
    const at = this.#deps.clock.now();
    const own = this.#sealed({ subject, text });
    return { ...own, accountId, kind, topic: '', recipient: to, at, expiresAt: at + lifeMs };
  }

  /**
   * The same for an account that has confirmed its address and wants mail about this; otherwise
   * does nothing.
   */
  tell(
    told: MailText & { accountId: number; about: MailAbout; topic?: string; lifeMs: number },
  ): Statement[] {
    const { mailStore, clock, isOn } = this.#deps;
    if (!isOn) return [];
    const { accountId, about, topic = '', lifeMs } = told;
    const at = clock.now();
    const own = this.#sealed(told);
    const row = { ...own, accountId, kind: about, topic, at, expiresAt: at + lifeMs };
    return [mailStore.insertIfWanted(row, about)];
  }

  /**
   * Records that someone requested a mail by this address. The statements are the same for every
   * address, so that neither the response nor its time reveals whether an account has it; the
   * handler of `kind` determines that later. Do not wake the queue: its work for the address would
   * slow this very response down. Beyond `most` within `withinMs` it does nothing.
   */
  ask(asked: {
    kind: string;
    recipient: string;
    lifeMs: number;
    most: number;
    withinMs: number;
  }): Statement[] {
    const { mailStore, clock } = this.#deps;
    const { kind, recipient, lifeMs, most, withinMs } = asked;
    const at = clock.now();
    const row = { mailId: newId('mail', clock), accountId: 0, kind, recipient, at, expiresAt: at + lifeMs };
    return mailStore.insertAsked(row, { most, since: at - withinMs });
  }

  /** Sets the handler of a kind; called while the cloud is built. */
  answers(kind: string, answerer: Answerer): void {
    this.#answerers.set(kind, answerer);
  }

  answererOf(kind: string): Answerer | undefined {
    return this.#answerers.get(kind);
  }

  #sealed({ subject, text }: MailText) {
    const { sealer, clock } = this.#deps;
    const mailId = newId('mail', clock);
    return { mailId, sealed: sealMail(sealer, mailId, { subject, text }) };
  }
}

/** For operations that are impossible without mail. */
export function mailNotSet(): AppError {
  return new AppError('mail_not_set', 'This cloud sends no mail', {
    hint: 'The operator sets CLOUDLET_SMTP_URL and CLOUDLET_MAIL_FROM; without them, ask the administrator',
  });
}

/** Part of the format: master key rotation uses the same one (metadata/secrets/sealed-columns-store.ts). */
const contextOf = (mailId: string) => `mail:${mailId}`;

export function sealMail(sealer: Sealer, mailId: string, { subject, text }: MailText): Uint8Array {
  return sealer.seal(Buffer.from(JSON.stringify({ subject, text })), contextOf(mailId));
}

/** Throws `data_corrupted` if it cannot be unsealed. */
export function openMail(sealer: Sealer, mailId: string, sealed: Uint8Array): MailText {
  return JSON.parse(sealer.unseal(sealed, contextOf(mailId)).toString()) as MailText;
}
