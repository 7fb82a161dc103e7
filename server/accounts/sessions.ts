/** Logging in and out of the console. A session is an opaque token, stored as its hash. */
import type { Principal } from '../calls/principal.ts';
import type { Changes, Recorder } from '../metadata/change.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { randomSecret } from '../platform/ids.ts';
import { foldEmail, foldUsername } from './account-fields.ts';
import { describeAccount } from './account-view.ts';
import { hashSecret } from './api-key-text.ts';
import type { ApiKeys } from './api-keys.ts';
import { type CredentialCache, SESSION_IDLE_MS, sessionCredentialId } from './authenticator.ts';
import { type LoginThrottle, ofAccount, typedName } from './login-throttle.ts';
import type { Passwords } from './passwords.ts';
import type { Account } from './schema.ts';
import type { AccountRow, AccountStore } from './store.ts';

/** However much it is used, a session ends after this long. */
export const SESSION_MAX_MS = 30 * 24 * 3600_000;
/** Beyond it the account's oldest session ends. */
const MAX_SESSIONS = 100;
/** How long an expired access key is still listed. */
const EXPIRED_KEYS_KEPT_MS = 30 * 24 * 3600_000;

export interface Login {
  /** User name or e-mail address. */
  readonly name: string;
  readonly password: string;
  /** The caller's. */
  readonly address: string;
}

export interface SessionsDeps {
  readonly store: AccountStore;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly passwords: Passwords;
  readonly throttle: LoginThrottle;
  readonly apiKeys: ApiKeys;
  readonly cache: CredentialCache;
}

/** The token hash of the session a principal came by; undefined when it came otherwise. */
export function sessionHashOf(principal: Principal): string | undefined {
  const prefix = sessionCredentialId('');
  return principal.via === 'session' ? principal.credentialId.slice(prefix.length) : undefined;
}

export class Sessions {
  readonly #deps: SessionsDeps;

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  /**
   * Begins a session. An unknown name and a wrong password cannot be told apart. Throws
   * `invalid_credentials`, `rate_limited`, `account_suspended` (to who knows the password), `overloaded`.
   */
  async login(
    recorder: Recorder,
    login: Login,
  ): Promise<{ readonly account: Account; readonly token: string }> {
    const row = await this.#checkPassword(login);
    const { store, changes, clock, apiKeys, cache } = this.#deps;
    const token = randomSecret(32).toString('base64url');
    const account = await changes.run(recorder, async (change) => {
      const now = clock.now();
      // Changed, suspended or closed since it was read: as if the login had come a moment later.
      change.expect(store.recordLogin(row.id, { passwordHash: row.password_hash, at: now }), wrong);
      const known = await store.sessions(row.id);
      for (const hash of known.slice(0, Math.max(0, known.length - MAX_SESSIONS + 1))) {
        change.add(store.deleteSession(hash));
        change.after(() => cache.forgetCredential(sessionCredentialId(hash)));
      }
      change.add(
        store.insertSession({
          tokenHash: hashSecret(token),
          accountId: row.id,
          createdAt: now,
          expiresAt: now + SESSION_MAX_MS,
        }),
      );
      return describeAccount({ ...row, last_login: now }, await apiKeys.current(row.id));
    });
    return { account, token };
  }

  /** Ends the session of `token`; one that is unknown or over is no error. */
  logout(recorder: Recorder, token: string | undefined): Promise<Record<string, never>> {
    const { store, changes, cache } = this.#deps;
    return changes.run(recorder, (change) => {
      if (token !== undefined) {
        const hash = hashSecret(token);
        change.add(store.deleteSession(hash));
        change.after(() => cache.forgetCredential(sessionCredentialId(hash)));
      }
      return {};
    });
  }

  /** Removes sessions, keys and set-up links that ended long enough ago. To be called now and then. */
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
    // Guesses by name and by e-mail address count together. To say so would tell which address belongs to
    // which name, so until the wait is over even the right password is called wrong.
    if (!right || row === undefined || isHeld) {
      throttle.failed(typed);
      if (account !== undefined && !isHeld) throttle.failed(account);
      throw wrong();
    }
    throttle.succeeded(typed);
    throttle.succeeded({ target: ofAccount(row.id), address });
    if (row.is_active === 0) {
      const reason = row.suspended_reason ? `: ${row.suspended_reason}` : '';
      throw new AppError('account_suspended', `This account is suspended${reason}`);
    }
    return row;
  }
}

function wrong(): AppError {
  return new AppError('invalid_credentials', 'The user name or the password is wrong', {
    hint: 'After many failures the right password is refused too, for a while: wait, and try again',
  });
}
