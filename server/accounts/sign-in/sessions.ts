/**
 * Login, logout and the list of sessions. A session has two secrets, each stored as its hash: the
 * cookie, which browsers also send to programs on other ports of the host, and the session token,
 * which only the page keeps. Neither is accepted without the other (decision 0039).
 */
import type { Call, Principal } from '../../calls/principal.ts';
import type { Change, Changes, Recorder } from '../../metadata/change.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { newId, randomSecret } from '../../platform/ids.ts';
import { accountSuspended } from '../account-errors.ts';
import { foldEmail, foldUsername } from '../account-fields.ts';
import { describeAccount } from '../account-view.ts';
import { reopenAccount } from '../closings-store.ts';
import { hashSecret } from '../keys/api-key-text.ts';
import type { ApiKeys } from '../keys/api-keys.ts';
import type { ResetLinkStore } from '../links/links-store.ts';
import type { Account, Session } from '../schema.ts';
import type { AccountRow, AccountStore } from '../store.ts';
import { SESSION_IDLE_MS, sessionCredentialId } from './authenticator.ts';
import { type LoginThrottle, ofAccount, typedName } from './login-throttle.ts';
import type { Passwords } from './passwords.ts';
import { followReopening, isClosedByOwner, type ReopeningDeps } from './reopening.ts';
import { sessionHashOf } from './session-credential.ts';
import { deleteSessionsExcept, type SessionRow, type SessionStore } from './sessions-store.ts';

/** Maximum lifetime of a session, even when it is in use. */
export const SESSION_MAX_MS = 30 * 24 * 3600_000;
/** The maximum; beyond it the account's oldest session ends. */
const MAX_SESSIONS = 100;
/** Time to set a password that has to be changed. */
const CHANGE_MS = 3600_000;
/** Maximum stored length of a User-Agent. */
const USER_AGENT_MAX_LENGTH = 400;
/** How long an expired access key is still listed. */
const EXPIRED_KEYS_KEPT_MS = 30 * 24 * 3600_000;

export interface Login {
  /** User name or e-mail address. */
  readonly name: string;
  readonly password: string;
  /** The caller's address. */
  readonly address: string;
  /** The User-Agent header. */
  readonly userAgent?: string;
}

export interface SessionsDeps extends ReopeningDeps {
  readonly store: AccountStore;
  readonly sessionStore: SessionStore;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly passwords: Passwords;
  readonly throttle: LoginThrottle;
  readonly apiKeys: ApiKeys;
  readonly resetLinkStore: ResetLinkStore;
}

export class Sessions {
  readonly #deps: SessionsDeps;
  /** Total since the start. */
  failedLogins = 0;

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  /**
   * Begins a session, and reopens the account if its owner has closed it; `cookie` and `token` are
   * its two secrets. An unknown name and a wrong password are indistinguishable. Throws
   * `invalid_credentials`, `rate_limited`, `account_suspended` and `password_change_required` (only
   * if the password is right), `overloaded`.
   */
  async login(
    recorder: Recorder,
    login: Login,
  ): Promise<{ readonly account: Account; readonly cookie: string; readonly token: string }> {
    const row = await this.#checkPassword(login);
    if (row.must_change === 1) throw await this.#changeRequired(row.id);
    const { store, sessionStore, changes, clock, apiKeys } = this.#deps;
    const [cookie, token] = [newSecret(), newSecret()];
    const account = await changes.run(recorder, async (change) => {
      const now = clock.now();
      // If the account has changed in the meantime, the login is treated as if it had arrived
      // later.
      const entry = { passwordHash: row.password_hash, at: now };
      const isClosed = row.removal_at !== null;
      change.expect(isClosed ? reopenAccount(row.id, entry) : store.recordLogin(row.id, entry), () =>
        wrong(row.id),
      );
      const key = isClosed ? followReopening(change, this.#deps, row.id) : await apiKeys.current(row.id);
      const known = await sessionStore.sessionsAfter(row.id, '', Number.MAX_SAFE_INTEGER);
      for (const { token_hash } of known.slice(0, Math.max(0, known.length - MAX_SESSIONS + 1))) {
        this.#end(change, token_hash);
      }
      change.add(
        sessionStore.insertSession({
          session_id: newId('ses', clock),
          token_hash: hashSecret(cookie),
          page_token_hash: hashSecret(token),
          account_id: row.id,
          user_agent: (login.userAgent ?? '').slice(0, USER_AGENT_MAX_LENGTH),
          address: login.address,
          created_at: now,
          last_seen_at: now,
          expires_at: now + SESSION_MAX_MS,
          password_at: now,
        }),
      );
      return describeAccount({ ...row, is_active: 1, last_login: now }, key);
    });
    return { account, cookie, token };
  }

  /**
   * The password was correct: a token allows setting the next one, like a reset link, which also opens an
   * account that its owner has closed.
   */
  async #changeRequired(accountId: number): Promise<AppError> {
    const { changes, clock, resetLinkStore } = this.#deps;
    const token = newSecret();
    const link = { tokenHash: hashSecret(token), expiresAt: clock.now() + CHANGE_MS };
    await changes.store(resetLinkStore.replaceAtSignIn(accountId, link), () => wrong(accountId));
    return new AppError('password_change_required', 'A new password has to be set first', {
      hint: 'Sign in with the console, which asks for the new password',
      extra: { reset_token: token },
    });
  }

  /**
   * Ends the session of `token`, whatever its cookie; an unknown or ended one is no error. The
   * cookie alone ends nothing. The audit entry names the account of the session, if there was one.
   */
  async logout(recorder: Recorder, token: string | undefined): Promise<{ readonly account_id?: number }> {
    const { sessionStore, changes } = this.#deps;
    const row = token === undefined ? undefined : await sessionStore.sessionOfPage(hashSecret(token));
    return changes.run(recorder, (change) => {
      if (row === undefined) return {};
      this.#end(change, row.token_hash);
      return { account_id: row.account_id };
    });
  }

  /** The caller's active sessions, oldest first; after `afterId`, at most `limit`. */
  async *list(
    principal: Principal,
    { afterId, limit }: { readonly afterId: string; readonly limit: number },
  ): AsyncGenerator<Session> {
    const { sessionStore, clock } = this.#deps;
    const now = clock.now();
    let left = limit;
    for (const row of await sessionStore.sessionsAfter(principal.accountId, afterId, MAX_SESSIONS)) {
      if (endOf(row) > now && left-- > 0) yield describe(row, sessionHashOf(principal));
    }
  }

  /** Ends one of the caller's sessions. Throws `session_not_found`, `scope_required`. */
  async end(call: Call, id: string): Promise<{ readonly id: string }> {
    const { sessionStore, changes, apiKeys } = this.#deps;
    const row = await sessionStore.session(id);
    if (row?.account_id !== call.principal.accountId) throw sessionNotFound();
    await apiKeys.assertOwner(call.principal);
    return changes.run(call, (change) => {
      this.#end(change, row.token_hash, sessionNotFound);
      return { id };
    });
  }

  /** Ends the caller's other sessions; with a key, all sessions. Throws `scope_required`. */
  async endOthers(call: Call): Promise<{ readonly ended: number }> {
    const { principal } = call;
    const { sessionStore, changes, apiKeys } = this.#deps;
    await apiKeys.assertOwner(principal);
    const own = sessionHashOf(principal) ?? '';
    return changes.run(call, async (change) => {
      const all = await sessionStore.sessionsAfter(principal.accountId, '', MAX_SESSIONS);
      change.add(deleteSessionsExcept(principal.accountId, own));
      change.forgets({ kind: 'account', id: principal.accountId });
      return { ended: all.filter(({ token_hash }) => token_hash !== own).length };
    });
  }

  /** `missing`: the error if the session has already ended; default: none. */
  #end(change: Change, tokenHash: string, missing?: () => Error): void {
    const { sessionStore } = this.#deps;
    const statement = sessionStore.deleteSession(tokenHash);
    if (missing === undefined) change.add(statement);
    else change.expect(statement, missing);
    change.forgets({ kind: 'credential', id: sessionCredentialId(tokenHash) });
  }

  /** Removes sessions, keys and set-up links that ended long ago. Called periodically. */
  async sweep(): Promise<void> {
    const { store, changes, clock } = this.#deps;
    await changes.store(store.sweep(clock.now(), { idleMs: SESSION_IDLE_MS, keptMs: EXPIRED_KEYS_KEPT_MS }));
  }

  async #checkPassword({ name: given, password, address }: Login): Promise<AccountRow> {
    const { store, throttle, passwords } = this.#deps;
    const isEmail = given.includes('@');
    const name = isEmail ? foldEmail(given) : foldUsername(given);
    const typed = { target: typedName(name), address };
    throttle.assertAllowed(typed);
    const row = await (isEmail ? store.accountByEmail(name) : store.accountByUsername(name));
    const account = row === undefined ? undefined : { target: ofAccount(row.id), address };
    let isHeld = false;
    const admit = () => {
      throttle.assertAllowed(typed);
      isHeld = account !== undefined && throttle.waitMs(account) > 0;
    };
    const right = await passwords.verify(password, row?.password_hash ?? null, { address, admit });
    // Failures by name and by e-mail address count together. A distinct error would reveal which address
    // belongs to which name, so until the wait is over even the right password is rejected.
    if (!right || row === undefined || isHeld) {
      this.failedLogins++;
      throttle.failed(typed);
      if (account !== undefined && !isHeld) throttle.failed(account);
      throw wrong(row?.id);
    }
    throttle.succeeded(typed);
    throttle.succeeded({ target: ofAccount(row.id), address });
    if (row.is_active === 0 && !isClosedByOwner(row)) {
      throw accountSuspended(row.suspended_reason);
    }
    return row;
  }
}

function newSecret(): string {
  return randomSecret(32).toString('base64url');
}

/** When the session expires if it is not used again. */
function endOf({ last_seen_at, expires_at }: SessionRow): number {
  return Math.min(expires_at, last_seen_at + SESSION_IDLE_MS);
}

function describe(row: SessionRow, currentHash: string | undefined): Session {
  return {
    id: row.session_id,
    is_current: row.token_hash === currentHash,
    user_agent: row.user_agent,
    address: row.address,
    created_at: formatTime(row.created_at),
    last_used_at: formatTime(row.last_seen_at),
    expires_at: formatTime(endOf(row)),
  };
}

function sessionNotFound(): AppError {
  return new AppError('session_not_found', 'There is no such session');
}

function wrong(accountId?: number): AppError {
  return new AppError('invalid_credentials', 'The user name or the password is wrong', {
    accountId,
    hint: 'After many failures even the right password is refused for a while; wait, then try again',
  });
}
