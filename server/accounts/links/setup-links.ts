/** The first administrator: created with the one-use link that the first start prints. */

import type { Change, Changes, Recorder } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import type { Accounts, NewAccount } from '../accounts.ts';
import { hashSecret } from '../keys/api-key-text.ts';
import type { Account } from '../schema.ts';
import type { AccountStore } from '../store.ts';
import type { SetupLinkStore } from './links-store.ts';

const LINK_LIFE_MS = 30 * 60_000;

export interface SetupLinksDeps {
  readonly store: AccountStore;
  readonly setupLinkStore: SetupLinkStore;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly accounts: Accounts;
}

export class SetupLinks {
  readonly #deps: SetupLinksDeps;

  constructor(deps: SetupLinksDeps) {
    this.#deps = deps;
  }

  /** True when no administrator exists. */
  async needsSetup(): Promise<boolean> {
    return !(await this.#deps.store.hasAdministrator());
  }

  /**
   * A new token, valid once and for 30 minutes, in the response that `present` makes of it. Earlier ones
   * end. Throws `administrator_exists`.
   */
  async createSetupLink<T>(recorder: Recorder, present: (token: string) => T): Promise<T> {
    const { setupLinkStore, changes, clock } = this.#deps;
    if (!(await this.needsSetup()))
      throw new AppError(
        'administrator_exists',
        'There is an administrator already; a set-up link only creates the first one',
        {
          hint: 'Run "cloudlet admin create" on the host to create another',
        },
      );
    const token = randomSecret(32).toString('base64url');
    return changes.run(recorder, (change) => {
      const expiresAt = clock.now() + LINK_LIFE_MS;
      change.addAll(setupLinkStore.replace({ tokenHash: hashSecret(token), expiresAt }));
      return present(token);
    });
  }

  /** True while the link with this token can be used: known, not expired, and no administrator yet. */
  async isGood(token: string): Promise<boolean> {
    const { setupLinkStore, clock } = this.#deps;
    const link = await setupLinkStore.find(hashSecret(token));
    return link !== undefined && link.expires_at > clock.now() && (await this.needsSetup());
  }

  /**
   * Throws `invalid_link` (unknown, used, expired), and the errors of Accounts.create, which leave
   * the link valid.
   */
  async setUp(recorder: Recorder, token: string, fields: NewAccount): Promise<Account> {
    const { setupLinkStore, accounts } = this.#deps;
    if (!(await this.isGood(token))) throw invalidLink();
    const precede = (change: Change) => change.expect(setupLinkStore.use(hashSecret(token)), invalidLink);
    return accounts.create(recorder, fields, { isAdmin: true, precede });
  }
}

function invalidLink(): AppError {
  return new AppError('invalid_link', 'The set-up link is unknown, used or expired', {
    hint: 'Run "cloudlet admin setup-link" on the host to get a new link',
  });
}
