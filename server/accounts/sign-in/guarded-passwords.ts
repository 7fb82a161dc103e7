/** Passwords of shared links: guesses are slowed like those of logins. */
import type { Attempt, LoginThrottle } from './login-throttle.ts';
import type { Passwords } from './passwords.ts';

const OF_LINKS = {
  detail: 'Too many wrong passwords for this link from this network',
  unaffected: 'other networks and other links',
};

export interface GuardedPasswordsDeps {
  readonly passwords: Passwords;
  readonly throttle: LoginThrottle;
}

export class GuardedPasswords {
  readonly #deps: GuardedPasswordsDeps;

  constructor(deps: GuardedPasswordsDeps) {
    this.#deps = deps;
  }

  /** See Passwords.hash(). */
  hash(password: string, by: { readonly address: string }): Promise<string> {
    return this.#deps.passwords.hash(password, by);
  }

  /** Whether `password` matches `stored`. Throws `rate_limited` after failures, `overloaded`. */
  async check(password: string, stored: string, attempt: Attempt): Promise<boolean> {
    const { passwords, throttle } = this.#deps;
    const admit = () => throttle.assertAllowed(attempt, OF_LINKS);
    admit();
    const isRight = await passwords.verify(password, stored, { address: attempt.address, admit });
    if (isRight) throttle.succeeded(attempt);
    else throttle.failed(attempt);
    return isRight;
  }
}
