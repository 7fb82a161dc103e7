/**
 * Asks for the password again: an unattended or stolen session must not show or change credentials
 * of the account. Callers with a key are not asked: the password protects nothing more.
 */
import type { Call, Principal } from '../../calls/principal.ts';
import type { Changes } from '../../metadata/change.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { accountNotFound, changedByOthers } from '../account-errors.ts';
import type { ConfirmedPassword } from '../schema.ts';
import type { AccountRow, AccountStore } from '../store.ts';
import { type LoginThrottle, ofAccount } from './login-throttle.ts';
import type { Passwords } from './passwords.ts';
import { sessionHashOf } from './session-credential.ts';
import type { SessionStore } from './sessions-store.ts';

/** How long a confirmed password is valid for sensitive calls. */
const PASSWORD_FRESH_MS = 15 * 60_000;

export interface PasswordChecksDeps {
  readonly store: AccountStore;
  readonly sessionStore: SessionStore;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly passwords: Passwords;
  readonly throttle: LoginThrottle;
}

/** A password and the address it was sent from. */
export interface GivenPassword {
  readonly password: string;
  /** The caller's. */
  readonly address: string;
}

export class PasswordChecks {
  readonly #deps: PasswordChecksDeps;

  constructor(deps: PasswordChecksDeps) {
    this.#deps = deps;
  }

  /** False for a session whose password was given too long ago. */
  async isFresh(principal: Principal): Promise<boolean> {
    const session = sessionHashOf(principal);
    if (session === undefined) return true;
    const { sessionStore, clock } = this.#deps;
    const givenAt = (await sessionStore.passwordGivenAt(session)) ?? 0;
    return clock.now() - givenAt < PASSWORD_FRESH_MS;
  }

  /** Throws `password_required` unless isFresh. */
  async assertFresh(principal: Principal): Promise<void> {
    if (await this.isFresh(principal)) return;
    throw new AppError(
      'password_required',
      'This call needs the password again: it was last given over 15 minutes ago',
      {
        hint: 'Confirm the password with POST /api/account/confirm-password, then repeat the request',
      },
    );
  }

  /** Throws `invalid_credentials`, and `rate_limited` and `overloaded` like a login. */
  async assertRight(row: AccountRow, { password, address }: GivenPassword): Promise<void> {
    const { throttle, passwords } = this.#deps;
    const attempt = { target: ofAccount(row.id), address };
    const admit = () => throttle.assertAllowed(attempt);
    admit();
    if (!(await passwords.verify(password, row.password_hash, { address, admit }))) {
      throttle.failed(attempt);
      throw new AppError('invalid_credentials', 'current_password is wrong');
    }
    throttle.succeeded(attempt);
  }

  /**
   * Confirms the session for 15 minutes. Throws the errors of assertRight, and `invalid_request`
   * for a key.
   */
  async confirm(call: Call, given: GivenPassword): Promise<ConfirmedPassword> {
    const { store, sessionStore, changes, clock } = this.#deps;
    const session = sessionHashOf(call.principal);
    if (session === undefined)
      throw new AppError(
        'invalid_request',
        'Only a session can confirm the password; API keys are never asked for it',
      );
    const row = await store.account(call.principal.accountId);
    if (row === undefined) throw accountNotFound();
    await this.assertRight(row, given);
    return changes.run(call, (change) => {
      const at = clock.now();
      const noted = sessionStore.notePassword(session, { passwordHash: row.password_hash, at });
      change.expect(noted, changedByOthers);
      return { confirmed_until: formatTime(at + PASSWORD_FRESH_MS) };
    });
  }
}
