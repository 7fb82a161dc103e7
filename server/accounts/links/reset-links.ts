/**
 * Password reset: an administrator, or the operator on the host, creates a one-time link, and whoever opens
 * it sets a new password. Only the hash of its token is stored; its creator is reported to the account's
 * webhooks and in the log.
 */
import { type Call, credentialOf, type Principal } from '../../calls/principal.ts';
import type { Change, Changes, Recorder } from '../../metadata/change.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import type { Announce } from '../../resources/row-change.ts';
import {
  accountNotFound,
  accountSuspended,
  assertMayOpen,
  changedByOthers,
  samePassword,
} from '../account-errors.ts';
import { assertAccountFields, foldEmail, foldUsername } from '../account-fields.ts';
import { nameOf } from '../account-view.ts';
import { reopenAccount } from '../closings-store.ts';
import { expectStanding } from '../expiries-store.ts';
import { hashSecret } from '../keys/api-key-text.ts';
import type { ResetLink, ResetPassword } from '../schema.ts';
import { type LoginThrottle, ofAccount, typedName } from '../sign-in/login-throttle.ts';
import type { PasswordChecks } from '../sign-in/password-checks.ts';
import type { Passwords } from '../sign-in/passwords.ts';
import { followReopening, isClosedByOwner, type ReopeningDeps } from '../sign-in/reopening.ts';
import { deleteSessionsExcept, type SessionStore } from '../sign-in/sessions-store.ts';
import type { AccountRow, AccountStore } from '../store.ts';
import type { ResetLinkStore } from './links-store.ts';

const LINK_LIFE_MS = 3600_000;
const BY_MAIL = 'the account itself, by mail';

export type AccountEventType = `account.${'reset_link_created' | 'password_reset'}`;

export interface ResetLinksDeps extends ReopeningDeps {
  readonly store: AccountStore;
  readonly sessionStore: SessionStore;
  readonly resetLinkStore: ResetLinkStore;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly checks: PasswordChecks;
  readonly passwords: Passwords;
  readonly throttle: LoginThrottle;
  /** Queues the account's webhooks in the same commit. */
  readonly announce: Announce<AccountEventType>;
  /** Writes a line of the log. */
  readonly log: (facts: Readonly<Record<string, unknown>>, message: string) => void;
  /** Base URL of the console, without a slash at the end. */
  readonly apiUrl: () => string;
}

/** Sent by the holder of a link. */
interface NewPassword {
  readonly token: string;
  readonly password: string;
  /** The caller's. */
  readonly address: string;
  /** The host names under which the page, or the program, sees the cloud. */
  readonly hosts: readonly string[];
}

export class ResetLinks {
  readonly #deps: ResetLinksDeps;

  constructor(deps: ResetLinksDeps) {
    this.#deps = deps;
  }

  /**
   * A link that sets the password of this account once, within an hour; an earlier one of the
   * account ends. Throws `account_not_found`, `account_inactive`, `password_required`,
   * `operator_required`.
   */
  async create(call: Call, accountId: number): Promise<ResetLink> {
    const { store, changes, checks, apiUrl } = this.#deps;
    await checks.assertFresh(call.principal);
    const url = apiUrl();
    // On the operator's socket, the public host name of the cloud is unknown.
    const host = call.principal.accountId === 0 ? '' : new URL(url).hostname;
    return changes.run(call, async (change) => {
      const row = await store.account(accountId);
      if (row === undefined) throw accountNotFound();
      assertMayOpen(call.principal, row);
      assertActive(row);
      return this.add(change, row, { url, host, by: call.principal });
    });
  }

  /**
   * Adds a new link of the account, which is active, to a commit. `by`: null if its holder
   * requested it by mail.
   */
  add(
    change: Change,
    row: AccountRow,
    { url, host, by }: { readonly url: string; readonly host: string; readonly by: Principal | null },
  ): ResetLink {
    const { resetLinkStore, clock, announce, log } = this.#deps;
    const token = randomSecret(32).toString('base64url');
    const at = clock.now();
    const expiresAt = at + LINK_LIFE_MS;
    const stored = { tokenHash: hashSecret(token), expiresAt, host };
    // A promotion to administrator meanwhile ends the account's links, but not this later one.
    change.add(expectStanding(row), 'retry');
    change.addAll(resetLinkStore.replace(row.id, stored), 'retry');
    const facts = { account_id: row.id, username: row.username, by: by === null ? BY_MAIL : nameOf(by) };
    const credential_id = by === null ? null : credentialOf(by);
    const data = { ...facts, credential_id, expires_at: formatTime(expiresAt) };
    change.addAll(announce({ accountId: row.id, type: 'account.reset_link_created', data, at }));
    change.after(() => log(facts, 'a reset link was created'));
    return { url: `${url}/reset-password#token=${token}`, expires_at: formatTime(expiresAt) };
  }

  /**
   * Uses the link: sets the password and ends the account's sessions; its keys remain. Opens an account
   * that its owner has closed, if the link is that of a sign-in. Throws
   * `invalid_link` (unknown, used, replaced, expired, for another host name: indistinguishable),
   * `account_suspended`, `invalid_request`, `overloaded`. After an error other than `invalid_link`
   * the link is still valid.
   */
  async use(recorder: Recorder, { token, password, address, hosts }: NewPassword): Promise<ResetPassword> {
    const { store, resetLinkStore, changes, clock, passwords } = this.#deps;
    const tokenHash = hashSecret(token);
    const link = await resetLinkStore.find(tokenHash, clock.now());
    if (link === undefined || !isGoodAt(link.host, hosts)) throw invalidLink();
    const row = await store.account(link.account_id);
    if (row === undefined) throw invalidLink();
    // A closed account has no link but that of a sign-in after it, with the right password.
    const isClosed = row.is_active === 0 && isClosedByOwner(row);
    if (row.is_active === 0 && !isClosed) throw accountSuspended(row.suspended_reason);
    assertAccountFields({ password });
    const mustDiffer = row.must_change === 1 && row.password_hash !== '';
    if (mustDiffer && (await passwords.verify(password, row.password_hash, { address })))
      throw samePassword();
    const becomes = await passwords.hash(password, { address, isAdmin: row.is_admin === 1 });
    return changes.run(recorder, async (change) => {
      change.expect(resetLinkStore.use(tokenHash, clock.now()), invalidLink);
      change.expect(store.setPassword(row.id, { was: row.password_hash, becomes }), changedByOthers);
      if (isClosed) {
        const entry = { passwordHash: becomes, at: clock.now() };
        change.expect(reopenAccount(row.id, entry), changedByOthers);
        followReopening(change, this.#deps, row.id);
      }
      return this.#follow(change, row, address);
    });
  }

  /** Ends sessions, invalidates caches, and notifies webhooks and the log. */
  async #follow(change: Change, row: AccountRow, address: string): Promise<ResetPassword> {
    const { store, sessionStore, clock, announce, log } = this.#deps;
    const { id, username } = row;
    const at = clock.now();
    const ended = await sessionStore.sessionsAfter(id, '', Number.MAX_SAFE_INTEGER);
    const keys = await store.countKeys(id, at);
    change.add(deleteSessionsExcept(id, ''));
    const facts = { account_id: id, username, address };
    change.addAll(announce({ accountId: id, type: 'account.password_reset', data: facts, at }));
    change.forgets({ kind: 'account', id });
    change.after(() => {
      this.#forgive(row, address);
      log(facts, 'a password was set with a reset link');
    });
    return { account_id: id, username, sessions_ended: ended.length, keys_kept: keys };
  }

  /** A forgotten password was tried a few times: the new one need not wait for those failures. */
  #forgive({ id, username, email }: AccountRow, address: string): void {
    const names = [typedName(foldUsername(username)), typedName(foldEmail(email)), ofAccount(id)];
    for (const target of names) this.#deps.throttle.succeeded({ target, address });
  }
}

/** Whether a link for this host name (empty: any) is valid for a caller who uses these names. */
export function isGoodAt(host: string, hosts: readonly string[]): boolean {
  return host === '' || hosts.includes(host);
}

/** A link does not undo a suspension or the closing of an account. */
export function assertActive({ username, is_active, suspended_reason, removal_at }: AccountRow): void {
  if (is_active === 1) return;
  const isSuspended = suspended_reason !== null || removal_at === null;
  const [state, hint] = isSuspended
    ? ['suspended', 'Resume the account first']
    : ['closed by its owner', 'The owner can reopen the account by signing in, until the account is removed'];
  throw new AppError('account_inactive', `The account ${username} is ${state}`, { hint });
}

function invalidLink(): AppError {
  return new AppError(
    'invalid_link',
    'The link is unknown, used, replaced or expired, or is for another host name',
    {
      hint: 'Ask the administrator of this cloud for a new link; on its host, run "cloudlet admin reset-link NAME"',
    },
  );
}
