/**
 * Links sent by mail: to set a forgotten password, requested by its holder or an administrator, and
 * to confirm an e-mail address. Their host name comes from the settings, never from a request,
 * whose sender could choose another host.
 */
import type { Call } from '../../calls/principal.ts';
import type { Answerer, NewMail, Outbox } from '../../mail/outbox.ts';
import type { Change, Changes, Recorder } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import { accountNotFound, accountSuspended, assertMayOpen } from '../account-errors.ts';
import { assertAccountFields, foldEmail } from '../account-fields.ts';
import { nameOf } from '../account-view.ts';
import { confirmEmail, releaseUnconfirmed } from '../emails-store.ts';
import { hashSecret } from '../keys/api-key-text.ts';
import type { ConfirmedEmail, MailedLink } from '../schema.ts';
import type { PasswordChecks } from '../sign-in/password-checks.ts';
import type { AccountRow, AccountStore } from '../store.ts';
import { confirmationMail, resetMail } from './link-mails.ts';
import type { EmailLinkStore } from './links-store.ts';
import { assertActive, isGoodAt, type ResetLinks } from './reset-links.ts';

const HOUR_MS = 3600_000;
/** Mails of a kind to one address within an hour. */
export const MOST_AN_HOUR = 3;
const CONFIRMATION_LIFE_MS = 72 * HOUR_MS;
const RESET = 'reset';
const CONFIRMATION = 'confirmation';
/** Nobody has strangers mailed by naming ever new addresses as their own. */
const CONFIRMATIONS = { most: MOST_AN_HOUR, mostOfAccount: 10, withinMs: HOUR_MS };

export interface MailedLinksDeps {
  readonly store: AccountStore;
  readonly emailLinkStore: EmailLinkStore;
  readonly resetLinks: ResetLinks;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly checks: PasswordChecks;
  readonly outbox: Outbox;
  /** Base URL of the console from the settings, else the address it listens on. */
  readonly mailUrl: () => string;
}

export class MailedLinks {
  readonly #deps: MailedLinksDeps;

  constructor(deps: MailedLinksDeps) {
    this.#deps = deps;
    deps.outbox.answers(RESET, this.#answerReset);
  }

  /**
   * Requests a mail with a reset link. It is sent only if an account has confirmed this address, at
   * most 3 times an hour; response and duration are the same for every address. Throws
   * `mail_not_set`.
   */
  requestReset(recorder: Recorder, email: string): Promise<Record<string, never>> {
    const { outbox, changes } = this.#deps;
    assertAccountFields({ email });
    outbox.assertOn();
    const asked = { kind: RESET, recipient: foldEmail(email), lifeMs: HOUR_MS, most: MOST_AN_HOUR };
    return changes.run(recorder, (change) => {
      change.addAll(outbox.ask({ ...asked, withinMs: HOUR_MS }));
      return {};
    });
  }

  /** Runs later, when no caller waits for it. */
  readonly #answerReset: Answerer = async (change, recipient) => {
    const { store, resetLinks } = this.#deps;
    const row = await store.accountByEmail(recipient);
    if (row === undefined || row.email_verified_at === null || row.is_active === 0) return null;
    const at = this.#place();
    const { url } = resetLinks.add(change, row, { ...at, by: null });
    return { ...resetMail({ username: row.username, url, host: at.host, by: null }), accountId: row.id };
  };

  /**
   * Mails a reset link to the address that the account has confirmed. Throws `mail_not_set`,
   * `account_not_found`, `account_inactive`, `email_not_confirmed`, `password_required`,
   * `operator_required`.
   */
  async mailReset(call: Call, accountId: number): Promise<MailedLink> {
    const { store, resetLinks, changes, checks, outbox } = this.#deps;
    outbox.assertOn();
    await checks.assertFresh(call.principal);
    return changes.run(call, async (change) => {
      const row = await store.account(accountId);
      if (row === undefined) throw accountNotFound();
      assertMayOpen(call.principal, row);
      assertActive(row);
      if (row.email_verified_at === null) throw notConfirmed();
      const at = this.#place();
      const { url, expires_at } = resetLinks.add(change, row, { ...at, by: call.principal });
      const by = nameOf(call.principal);
      const text = resetMail({ username: row.username, url, host: at.host, by });
      this.#mail(change, { ...text, accountId: row.id, to: row.email, kind: RESET, lifeMs: HOUR_MS });
      return { mailed_to: row.email, expires_at };
    });
  }

  /** Mails the caller a link that confirms the account's address. Throws `mail_not_set`, `rate_limited`. */
  async requestConfirmation(call: Call): Promise<{ readonly mailed_to: string }> {
    const { store, changes, outbox } = this.#deps;
    outbox.assertOn();
    return changes.run(call, async (change) => {
      const row = await store.account(call.principal.accountId);
      if (row === undefined) throw accountNotFound();
      if (!(await this.askToConfirm(change, row)))
        throw new AppError('rate_limited', 'Too many of these mails were sent within the last hour', {
          hint: 'Check your mailbox and its spam folder, or try again in an hour',
        });
      return { mailed_to: row.email };
    });
  }

  /**
   * Adds a mail with a link that confirms the account's address to a commit. Returns false and adds
   * nothing without mail, or if three mails were sent there, or ten for the account, within the last
   * hour.
   */
  async askToConfirm(
    change: Change,
    { id, username, email }: Pick<AccountRow, 'id' | 'username' | 'email'>,
  ): Promise<boolean> {
    const { emailLinkStore, clock, outbox } = this.#deps;
    const whose = { accountId: id, to: foldEmail(email), kind: CONFIRMATION };
    if (!outbox.isOn || !(await outbox.mayMail(whose, CONFIRMATIONS))) return false;
    const { url, host } = this.#place();
    const token = randomSecret(32).toString('base64url');
    const expiresAt = clock.now() + CONFIRMATION_LIFE_MS;
    change.addAll(
      emailLinkStore.replace({ account_id: id, email, host, tokenHash: hashOf(token), expiresAt }),
    );
    const text = confirmationMail({ username, host, url: `${url}/confirm-email#token=${token}` });
    const mail = { ...text, ...whose, lifeMs: CONFIRMATION_LIFE_MS };
    // Concurrent requests do not count each other's mails: the commit decides, and the retry counts all.
    change.addAll(outbox.mailUpTo(mail, CONFIRMATIONS), 'retry');
    change.after(() => outbox.wake());
    return true;
  }

  /**
   * Confirms the address, and takes it from an account that has it unconfirmed. Throws
   * `invalid_link` (unknown, used, replaced, expired, for another host name or for an address that
   * was changed: indistinguishable), `account_suspended` (also one that is to be removed), `email_taken`.
   */
  async confirm(
    recorder: Recorder,
    { token, hosts }: { readonly token: string; readonly hosts: readonly string[] },
  ): Promise<ConfirmedEmail> {
    const { store, emailLinkStore, changes, clock } = this.#deps;
    const tokenHash = hashOf(token);
    return changes.run(recorder, async (change) => {
      const link = await emailLinkStore.find(tokenHash, clock.now());
      if (link === undefined || !isGoodAt(link.host, hosts)) throw invalidLink();
      const row = await store.account(link.account_id);
      if (row === undefined) throw invalidLink();
      if (row.is_active === 0) throw accountSuspended(row.suspended_reason);
      change.expect(emailLinkStore.use(tokenHash), invalidLink);
      change.add(releaseUnconfirmed(foldEmail(link.email), row.id));
      change.expect(confirmEmail(row.id, link.email, clock.now()), (reason) =>
        reason === 'unique' ? taken() : invalidLink(),
      );
      return { account_id: row.id, username: row.username, email: link.email };
    });
  }

  #place(): { readonly url: string; readonly host: string } {
    const url = this.#deps.mailUrl();
    return { url, host: new URL(url).hostname };
  }

  #mail(change: Change, mail: NewMail): void {
    const { outbox } = this.#deps;
    change.addAll(outbox.mail(mail));
    change.after(() => outbox.wake());
  }
}

/** Differs from a reset link's: a node of the previous version would accept the token as one. */
const hashOf = (token: string) => hashSecret(`email:${token}`);

function notConfirmed(): AppError {
  return new AppError('email_not_confirmed', 'The e-mail address of this account is not confirmed', {
    hint: 'Create a link without mail, and give it to the account owner in a way that you trust',
  });
}

function taken(): AppError {
  const fields = [{ field: 'email', message: 'is taken' }];
  return new AppError('email_taken', 'Another account has confirmed this e-mail address', { fields });
}

function invalidLink(): AppError {
  return new AppError(
    'invalid_link',
    'The link is unknown, used, replaced or expired, or is for another host name',
    {
      hint: 'Request a new link in the console, under Account',
    },
  );
}
