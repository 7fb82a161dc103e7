/** Accounts: registered, read and changed. */
import { ACTORS } from '../calls/audit.ts';
import type { Call, Principal } from '../calls/principal.ts';
import type { Registration as RegistrationPolicy } from '../config/registrations.ts';
import type { MailAbout } from '../mail/outbox.ts';
import type { Change, Changes, Recorder } from '../metadata/change.ts';
import type { Statement } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError, invalidField, isAppError } from '../platform/errors.ts';
import { newCanonicalId } from '../platform/ids.ts';
import { accountNotFound, changedByOthers, registrationClosed, samePassword } from './account-errors.ts';
import { assertAccountFields, foldEmail, foldUsername } from './account-fields.ts';
import { describeAccount, describeRegistration } from './account-view.ts';
import { toCredits } from './credits.ts';
import { claimOf } from './email-claims.ts';
import { releaseUnconfirmed, setEmail, setMailAbout } from './emails-store.ts';
import type { ApiKeys } from './keys/api-keys.ts';
import { deleteResetLinks } from './links/links-store.ts';
import type { Account, Registration } from './schema.ts';
import type { PasswordChecks } from './sign-in/password-checks.ts';
import type { Passwords } from './sign-in/passwords.ts';
import { sessionHashOf } from './sign-in/session-credential.ts';
import { deleteSessionsExcept, type SessionStore } from './sign-in/sessions-store.ts';
import type { AccountRow, AccountStore, NewAccountRow } from './store.ts';

/** Writes a transfer to the ledger (billing). The user's side is `account:<id>`. */
export type Transfer = (transfer: {
  readonly id: string;
  readonly debit: string;
  readonly credit: string;
  readonly amountMicro: bigint;
  readonly code: string;
  readonly reference: string;
  readonly at: number;
}) => readonly Statement[];

export interface NewAccount {
  readonly username: string;
  readonly email: string;
  /** Without a password, only keys work. */
  readonly password?: string | undefined;
  /** The caller's address; absent for the operator. */
  readonly address?: string | undefined;
}

/** The terms of an invitation. */
export interface Invited {
  readonly id: string;
  readonly plan: string;
  /** On top of the sign-up credits. */
  readonly creditsMicro: number;
  /** Spend cap by an administrator; null: none. */
  readonly spendCapMicro: number | null;
  /** The end of the account; null: none. */
  readonly expiresAt: number | null;
  /** The administrator's name, for the ledger. */
  readonly by: string;
  readonly planGone: () => Error;
}

export interface CreateOptions {
  readonly isAdmin: boolean;
  /** Adds statements whose refusals take precedence. */
  readonly precede?: (change: Change) => void;
  /** Used as the key instead of a new one. */
  readonly apiKey?: string;
  /** The invitation's terms apply to the new account. */
  readonly invited?: Invited;
  /**
   * The address is known to belong to the holder: the account was created by a link sent only to
   * that mailbox.
   */
  readonly isConfirmed?: boolean;
  /** Names of ACTORS, and in open invitations of others, are taken. */
  readonly isJoining?: boolean;
  /** false: the address is shown but not claimed, and cannot be used to log in. */
  readonly claimEmail?: boolean;
}

export interface AccountChange {
  readonly email?: string | undefined;
  readonly password?: string | undefined;
  readonly currentPassword?: string | undefined;
  /** Subjects of mail that the account wants. */
  readonly mailAbout?: readonly MailAbout[] | undefined;
  /** The caller's. */
  readonly address: string;
}

export interface AccountsDeps {
  readonly store: AccountStore;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly passwords: Passwords;
  readonly checks: PasswordChecks;
  readonly sessionStore: SessionStore;
  readonly apiKeys: ApiKeys;
  readonly transfer: Transfer;
  /** Assigns a plan to the account. Refused if the plan does not exist. */
  readonly assignPlan: (accountId: number, name: string) => Statement;
  /** Gives a new account an administrator's spend cap. */
  readonly capNew: (accountId: number, capMicro: number) => Statement;
  /** Whole micro-credits granted at registration. */
  readonly signupMicro: number;
  /** The right to register without an administrator. */
  readonly registration: RegistrationPolicy;
  /** The remaining credits, micro-credits, less usage that is not charged yet. */
  readonly balance?: (accountId: number) => Promise<{ readonly free: bigint; readonly held: bigint }>;
  /** Whether this cloud sends mail, which confirms addresses. */
  readonly sendsMail: boolean;
  /** Adds a mail to the commit that asks the holder of an address to confirm it. */
  readonly askToConfirm: (
    change: Change,
    row: Pick<AccountRow, 'id' | 'username' | 'email'>,
  ) => Promise<unknown>;
}

export class Accounts {
  readonly #deps: AccountsDeps;
  #highestStored: Promise<number> | undefined;
  #lastId = 0;

  constructor(deps: AccountsDeps) {
    this.#deps = deps;
  }

  /** Throws `registration_closed`, `invalid_request`, `username_taken`, `email_taken`, `overloaded`. */
  async register(recorder: Recorder, fields: NewAccount): Promise<Registration> {
    const { registration } = this.#deps;
    if (registration !== 'open') throw registrationClosed(registration);
    return this.createRegistered(recorder, fields, { isAdmin: false });
  }

  /** Same as above, with the response of a registration, which is also stored under an Idempotency-Key. */
  createRegistered(recorder: Recorder, fields: NewAccount, options: CreateOptions): Promise<Registration> {
    return this.#make(recorder, fields, { ...options, isJoining: true, present: describeRegistration });
  }

  /**
   * An account with its key and its sign-up credits, all in one commit. Throws the errors of
   * register, except `registration_closed`.
   */
  create(recorder: Recorder, fields: NewAccount, options: CreateOptions): Promise<Account> {
    return this.#make(recorder, fields, { ...options, present: (account) => account });
  }

  async #make<T>(
    recorder: Recorder,
    fields: NewAccount,
    options: CreateOptions & { readonly present: (account: Account) => T },
  ): Promise<T> {
    assertAccountFields(fields);
    // Checked before hashing because that costs 60 ms; the commit decides.
    await this.#assertFree(fields, options);
    const { passwords, clock, apiKeys, changes, store } = this.#deps;
    const { username, email, password, address } = fields;
    const { isAdmin, invited } = options;
    const passwordHash = password === undefined ? '' : await passwords.hash(password, { address, isAdmin });
    const createdAt = clock.now();
    const canonicalId = newCanonicalId();
    return changes.run(recorder, async (change) => {
      const id = await this.#newAccountId();
      const key = apiKeys.issue(id, options.apiKey);
      const emailFolded = await this.#claim(email, options).catch(async (error) => {
        await this.#assertFree(fields, options);
        throw error;
      });
      const emailVerifiedAt = options.isConfirmed === true ? createdAt : null;
      const inserted = store.insertAccount({
        id,
        username,
        usernameFolded: foldUsername(username),
        email,
        emailFolded,
        passwordHash,
        isAdmin,
        createdAt,
        canonicalId,
        expiresAt: invited?.expiresAt ?? null,
        invitationId: invited?.id ?? null,
        emailVerifiedAt,
      });
      options.precede?.(change);
      if (options.isConfirmed === true) change.add(releaseUnconfirmed(foldEmail(email), id));
      const refused = async () => {
        await this.#assertFree(fields, options);
        // Another node assigned this id: the next attempt reads the stored one.
        this.#highestStored = undefined;
        return 'retry' as const;
      };
      change.add(inserted, refused);
      const joining = { now: createdAt, ownId: invited?.id ?? '' };
      if (options.isJoining === true)
        change.add(store.expectNotInvited(id, foldUsername(username), joining), refused);
      change.add(key.statement);
      if (emailVerifiedAt === null && options.claimEmail !== false)
        await this.#deps.askToConfirm(change, { id, username, email });
      change.addAll(this.#signupGrant(id, createdAt));
      if (invited !== undefined) this.#keepPromises(change, { id, createdAt, invited });
      const made = { id, username, email, passwordHash, isAdmin, createdAt, canonicalId, emailVerifiedAt };
      const row = this.#newRow(made, invited);
      return options.present(describeAccount(row, key.text));
    });
  }

  /** null: the account is created without a claim to its address. */
  async #claim(email: string, { claimEmail, isConfirmed }: CreateOptions): Promise<string | null> {
    if (claimEmail === false) return null;
    const folded = await claimOf(this.#deps, email);
    return isConfirmed === true ? foldEmail(email) : folded;
  }

  #keepPromises(
    change: Change,
    made: { readonly id: number; readonly createdAt: number; readonly invited: Invited },
  ): void {
    const { id, createdAt, invited } = made;
    const { assignPlan, capNew, transfer } = this.#deps;
    change.expect(assignPlan(id, invited.plan), invited.planGone);
    if (invited.spendCapMicro !== null) change.add(capNew(id, invited.spendCapMicro));
    if (invited.creditsMicro === 0) return;
    const granted = {
      id: `invitation:${id}`,
      debit: 'system:grants',
      credit: `account:${id}`,
      amountMicro: BigInt(invited.creditsMicro),
      code: 'admin_grant',
      reference: `by ${invited.by}: invitation`,
      at: createdAt,
    };
    change.addAll(transfer(granted));
  }

  /**
   * The caller's account. The key is shown to itself, and to a session whose password was confirmed
   * recently.
   */
  async profile(principal: Principal, { hasKey = true } = {}): Promise<Account> {
    const own = await this.#own(principal);
    const left = await this.#deps.balance?.(own.id);
    const row = left === undefined ? own : { ...own, credits_micro: left.free, held_micro: left.held };
    return hasKey ? this.#describe(principal, row) : describeAccount(row, null);
  }

  /**
   * Changes the e-mail address or the password; a new password ends the account's other sessions. Throws
   * `invalid_request`, `invalid_credentials`, `password_required`, `rate_limited`, `email_taken`,
   * `scope_required` (an account without a password is changed only by its own key or session).
   */
  async update(call: Call, wanted: AccountChange): Promise<Account> {
    const { principal } = call;
    const row = await this.#own(principal);
    const { email, password, address } = wanted;
    const mailAbout = wanted.mailAbout === undefined ? undefined : [...new Set(wanted.mailAbout)].join(',');
    if ([email, password, mailAbout].every((one) => one === undefined)) return await this.profile(principal);
    assertAccountFields({ email, password });
    if (email !== undefined || password !== undefined)
      await this.#assertCurrentPassword(principal, row, wanted);
    const { store, sessionStore, changes, clock, passwords } = this.#deps;
    if (email !== undefined) await claimOf(this.#deps, email, row.id);
    const isAdmin = row.is_admin === 1;
    const isOther = email !== undefined && foldEmail(email) !== foldEmail(row.email);
    const isGiven = wanted.currentPassword !== undefined && row.password_hash !== '';
    if (row.must_change === 1 && isGiven && password === wanted.currentPassword) throw samePassword();
    const session = sessionHashOf(principal);
    const becomes = password === undefined ? undefined : await passwords.hash(password, { address, isAdmin });
    return changes.run(call, async (change) => {
      if (email !== undefined) {
        const claimed = await claimOf(this.#deps, email, row.id);
        change.expect(setEmail(row.id, { email, claimed }), (reason) =>
          reason === 'unique' ? 'retry' : changedByOthers(),
        );
        if (isOther) change.add(deleteResetLinks(row.id));
        if (isOther || row.email_verified_at === null)
          await this.#deps.askToConfirm(change, { ...row, email });
      }
      if (mailAbout !== undefined) change.expect(setMailAbout(row.id, mailAbout), changedByOthers);
      if (becomes !== undefined) {
        change.expect(store.setPassword(row.id, { was: row.password_hash, becomes }), changedByOthers);
        change.addAll([deleteSessionsExcept(row.id, session ?? ''), deleteResetLinks(row.id)]);
        change.forgets({ kind: 'account', id: row.id });
      }
      if (isGiven && session !== undefined) {
        const passwordHash = becomes ?? row.password_hash;
        const noted = sessionStore.notePassword(session, { passwordHash, at: clock.now() });
        change.expect(noted, changedByOthers);
      }
      const after = {
        ...row,
        email: email ?? row.email,
        email_verified_at: isOther ? null : row.email_verified_at,
        mail_about: mailAbout ?? row.mail_about,
      };
      return this.#describe(principal, after, isGiven);
    });
  }

  /** `isGiven`: the password was sent with this request. */
  async #describe(principal: Principal, row: AccountRow, isGiven = false): Promise<Account> {
    const { apiKeys, checks } = this.#deps;
    const visible = (await apiKeys.ownsAccount(principal)) && (isGiven || (await checks.isFresh(principal)));
    return describeAccount(row, visible ? await apiKeys.current(row.id) : null);
  }

  async #own(principal: Principal): Promise<AccountRow> {
    const row = await this.#deps.store.account(principal.accountId);
    if (row === undefined) throw accountNotFound();
    return row;
  }

  async #assertCurrentPassword(principal: Principal, row: AccountRow, change: AccountChange): Promise<void> {
    const { apiKeys, checks } = this.#deps;
    if (row.password_hash === '') {
      await apiKeys.assertOwner(principal);
      return await checks.assertFresh(principal);
    }
    const { password, currentPassword, address } = change;
    if (currentPassword !== undefined)
      return await checks.assertRight(row, { password: currentPassword, address });
    if (password === undefined && principal.via === 'session') return await checks.assertFresh(principal);
    throw invalidField(
      'current_password',
      'is required to change the password, and, with an API key, to change the e-mail address',
    );
  }

  /** Reports both problems if both are taken. */
  async #assertFree(fields: NewAccount, options: CreateOptions): Promise<void> {
    const named = await this.#isNameTaken(foldUsername(fields.username), options);
    const mailed = await this.#claim(fields.email, options).then(
      () => false,
      (error: unknown) => {
        // A read that failed says nothing about the address.
        if (isAppError(error, 'email_taken')) return true;
        throw error;
      },
    );
    const problems = [
      ...(named ? [{ field: 'username', message: 'is taken' }] : []),
      ...(mailed ? [{ field: 'email', message: 'is taken' }] : []),
    ];
    if (problems.length === 0) return;
    const both = named && mailed;
    const what = both
      ? 'user name and this e-mail address are'
      : named
        ? 'user name is'
        : 'e-mail address is';
    throw new AppError(named ? 'username_taken' : 'email_taken', `This ${what} taken`, { fields: problems });
  }

  async #isNameTaken(folded: string, { isJoining = false, invited }: CreateOptions): Promise<boolean> {
    const { store, clock } = this.#deps;
    if ((await store.accountByUsername(folded)) !== undefined) return true;
    if (!isJoining || ACTORS.has(folded)) return isJoining;
    return store.isInvited(folded, { now: clock.now(), ownId: invited?.id ?? '' });
  }

  /** Known before the commit, because the response is part of it. */
  async #newAccountId(): Promise<number> {
    this.#highestStored ??= this.#deps.store.lastAccountId();
    this.#lastId = Math.max(this.#lastId, await this.#highestStored) + 1;
    return this.#lastId;
  }

  #newRow(
    made: Omit<NewAccountRow, 'usernameFolded' | 'emailFolded' | 'expiresAt' | 'invitationId'>,
    invited: Invited | undefined,
  ): AccountRow {
    return {
      id: made.id,
      username: made.username,
      email: made.email,
      password_hash: made.passwordHash,
      plan: invited?.plan ?? 'free',
      is_admin: made.isAdmin ? 1 : 0,
      was_admin: 0,
      is_auditor: 0,
      is_active: 1,
      suspended_reason: null,
      credits_micro: this.#deps.signupMicro + (invited?.creditsMicro ?? 0),
      held_micro: 0,
      admin_cap_micro: invited?.spendCapMicro ?? null,
      billing_state: 'ok',
      exhausted_at: null,
      grace_ends_at: null,
      storage_bytes: 0,
      created_at: made.createdAt,
      last_login: null,
      canonical_id: made.canonicalId,
      removal_at: null,
      expires_at: invited?.expiresAt ?? null,
      invitation_id: invited?.id ?? null,
      must_change: 0,
      email_verified_at: made.emailVerifiedAt,
      mail_about: '',
    };
  }

  #signupGrant(accountId: number, at: number): readonly Statement[] {
    const { signupMicro, transfer } = this.#deps;
    if (signupMicro === 0) return [];
    return transfer({
      id: `signup:${accountId}`,
      debit: 'system:grants',
      credit: `account:${accountId}`,
      amountMicro: BigInt(signupMicro),
      code: 'signup_grant',
      reference: `${toCredits(signupMicro)} credits at registration`,
      at,
    });
  }
}
