/** The part of the composition root that makes accounts: keys, sessions, administration. */
import { AccessKeys } from './accounts/access-keys.ts';
import { Accounts } from './accounts/accounts.ts';
import { Administration, type AdministrationDeps } from './accounts/administration.ts';
import { ApiKeys } from './accounts/api-keys.ts';
import { Authenticator } from './accounts/authenticator.ts';
import { LoginThrottle } from './accounts/login-throttle.ts';
import { readBlocklist } from './accounts/password-blocklist.ts';
import { Passwords } from './accounts/passwords.ts';
import { Sessions } from './accounts/sessions.ts';
import { SetupLinks } from './accounts/setup-links.ts';
import { SetupLinkStore } from './accounts/setup-links-store.ts';
import { AccountStore } from './accounts/store.ts';
import { transferStatements } from './billing/ledger.ts';
import type { Config } from './config/config.ts';
import type { Metadata } from './metadata/metadata.ts';
import type { Clock } from './platform/clock.ts';
import type { MasterKeys } from './platform/master-key.ts';

export interface AccountsDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly base: { readonly metadata: Metadata; readonly keys: MasterKeys };
  readonly credits: Pick<AdministrationDeps, 'creditsAdded' | 'accountChanged' | 'reactivation'>;
}

export type AccountParts = Awaited<ReturnType<typeof buildAccounts>>;

export async function buildAccounts({ config, clock, base, credits }: AccountsDeps) {
  const { metadata, keys } = base;
  const store = new AccountStore({ reads: metadata });
  const authenticator = new Authenticator({ store, metadata, clock });
  const passwords = new Passwords({ blocklist: readBlocklist(config.passwordBlocklist) });
  const throttle = new LoginThrottle({ clock, freeFailures: config.loginFailures });
  const shared = {
    store,
    metadata,
    clock,
    sealer: keys,
    cache: authenticator,
    passwords,
    throttle,
    transfer: transferStatements,
    ...credits,
  };
  const apiKeys = new ApiKeys(shared);
  const accessKeys = new AccessKeys({ ...shared, maxKeys: config.maxAccessKeys });
  const accounts = new Accounts({ ...shared, apiKeys, signupMicro: config.signupCredits * 1_000_000 });
  const sessions = new Sessions({ ...shared, apiKeys });
  const administration = new Administration({ ...shared, accounts, apiKeys, authenticator });
  const setupLinks = new SetupLinks({
    ...shared,
    setupLinkStore: new SetupLinkStore({ reads: metadata }),
    accounts,
  });
  if (config.adminKey !== '') await administration.ensureAdminKey(config.adminKey);
  const linkKeys = {
    currentId: (accountId: number) => apiKeys.currentId(accountId),
    holderOf: (keyId: string) => authenticator.holderOf(keyId),
  };
  return { accounts, apiKeys, accessKeys, sessions, administration, setupLinks, authenticator, linkKeys };
}
