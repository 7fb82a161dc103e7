/** Builds accounts: registration, sessions, keys, administration. */

import type { Logger } from 'pino';
import { ShortTokens } from '../calls/short-tokens.ts';
import type { Tickets } from '../calls/tickets.ts';
import type { Config } from '../config/config.ts';
import { registrationDomains, registrationOf } from '../config/registrations.ts';
import type { Outbox } from '../mail/outbox.ts';
import type { Ages } from '../metadata/ages.ts';
import type { Bus } from '../metadata/bus.ts';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Job } from '../platform/background/jobs.ts';
import type { Clock } from '../platform/clock.ts';
import type { MasterKeys } from '../platform/master-key.ts';
import type { Meters } from '../platform/prometheus.ts';
import { AccountChanges } from './account-changes.ts';
import { type AccountsDeps as AccountDeps, Accounts } from './accounts.ts';
import { type AdminRoutesDeps, adminRoutes } from './admin-routes.ts';
import { Administration, type AdministrationDeps } from './administration.ts';
import { Closings, type ClosingsDeps } from './closings.ts';
import { AccountDirectory } from './directory.ts';
import { AccountExports, type AccountExportsDeps } from './export/account-exports.ts';
import { type ExportRoutesDeps, exportRoutes } from './export/export-routes.ts';
import { ExportedAccount, type ExportedAccountDeps } from './export/exported-account.ts';
import { type InvitationRoutesDeps, invitationRoutes } from './invitations/invitation-routes.ts';
import { Invitations, type InvitationsDeps } from './invitations/invitations.ts';
import { InvitationStore } from './invitations/invitations-store.ts';
import { AccessKeys } from './keys/access-keys.ts';
import { ApiKeys } from './keys/api-keys.ts';
import { RightsHolders } from './keys/rights-holders.ts';
import { type LinkRoutesDeps, mailedLinkRoutes, resetRoutes, setupRoutes } from './links/link-routes.ts';
import { EmailLinkStore, ResetLinkStore, SetupLinkStore } from './links/links-store.ts';
import { MailedLinks, type MailedLinksDeps } from './links/mailed-links.ts';
import { ResetLinks, type ResetLinksDeps } from './links/reset-links.ts';
import { SetupLinks, type SetupLinksDeps } from './links/setup-links.ts';
import { type AccountRoutesDeps, accountRoutes } from './routes.ts';
import { Authenticator } from './sign-in/authenticator.ts';
import { clientLoginRoutes } from './sign-in/client-login-routes.ts';
import { ClientLogins } from './sign-in/client-logins.ts';
import { GuardedPasswords } from './sign-in/guarded-passwords.ts';
import { LoginThrottle } from './sign-in/login-throttle.ts';
import { PasswordChecks } from './sign-in/password-checks.ts';
import { Passwords, readBlocklist } from './sign-in/passwords.ts';
import { Sessions } from './sign-in/sessions.ts';
import { SessionStore } from './sign-in/sessions-store.ts';
import { AccountStore } from './store.ts';

export interface AccountsDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly base: {
    readonly metadata: Metadata;
    readonly bus: Bus;
    readonly ages: Ages;
    readonly keys: MasterKeys;
    readonly tickets: Tickets;
    readonly audit: ClosingsDeps['audit'];
  };
  readonly log: Logger;
  readonly transfer: AccountDeps['transfer'];
  readonly announce: ResetLinksDeps['announce'];
  readonly credits: Pick<AdministrationDeps, 'creditsAdded' | 'accountChanged' | 'reactivation' | 'settle'> &
    Pick<AccountDeps, 'balance' | 'assignPlan' | 'capNew'> &
    Pick<InvitationsDeps, 'hasPlan'>;
  readonly outbox: Outbox;
  /** Other domains' parts of an export, and its spools. */
  readonly exports: Pick<AccountExportsDeps, 'sources' | 'openSpool'>;
  /** URL of the console in mail: from the settings, else the address it listens on. */
  readonly mailUrl: () => string;
  /** URLs of the API and the data origin for users, without a slash at the end. */
  readonly apiUrl: () => string;
  readonly dataUrl: () => string;
}

export function accountsRoutes(
  deps: AccountRoutesDeps &
    LinkRoutesDeps &
    AdminRoutesDeps &
    InvitationRoutesDeps &
    ExportRoutesDeps & { readonly clientLogins: ClientLogins },
) {
  const links = [...setupRoutes(deps), ...resetRoutes(deps), ...mailedLinkRoutes(deps)];
  const own = [...accountRoutes(deps), ...exportRoutes(deps), ...links];
  return [...own, ...clientLoginRoutes(deps.clientLogins), ...adminRoutes(deps), ...invitationRoutes(deps)];
}

export type AccountsPart = Awaited<ReturnType<typeof accountsPart>>;

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const FLUSH_MS = 5000;
const CLOSING_MS = 10 * 60_000;

/** Builds accounts, and creates the administrator from the settings. */
export async function accountsPart({
  config,
  clock,
  log,
  base,
  credits,
  transfer,
  announce,
  outbox,
  exports,
  mailUrl,
  apiUrl,
  dataUrl,
}: AccountsDeps) {
  const { metadata, bus, ages, keys, tickets, audit } = base;
  const store = new AccountStore({ reads: metadata });
  const changes = new Changes({ metadata, bus });
  const authenticator = new Authenticator({ store, changes, bus, ages, clock, sealer: keys });
  const passwords = new Passwords({ blocklist: readBlocklist(config.passwordBlocklist) });
  const throttle = new LoginThrottle({ clock, freeFailures: config.loginFailures });
  const shared = {
    store,
    reads: metadata,
    changes,
    clock,
    sealer: keys,
    passwords,
    throttle,
    transfer,
    tokens: new ShortTokens({ metadata, clock }),
    audit,
    ...credits,
  };
  const sessionStore = new SessionStore({ reads: metadata });
  const checks = new PasswordChecks({ ...shared, sessionStore });
  const apiKeys = new ApiKeys({ ...shared, checks });
  const accessKeys = new AccessKeys({ ...shared, checks, maxKeys: config.maxAccessKeys, dataUrl });
  const clientLogins = new ClientLogins({ ...shared, checks, accessKeys, authenticator, apiUrl });
  const registration = registrationOf(config);
  const resetLinkStore = new ResetLinkStore({ reads: metadata });
  const written = { announce, log: log.info.bind(log), apiUrl, mailUrl, outbox };
  const ofLinks = { ...shared, ...written, apiKeys, sessionStore, checks, resetLinkStore };
  const { resetLinks, mailedLinks, confirming } = mailedLinksOf(ofLinks, metadata);
  const ofAccounts = { ...shared, ...confirming, apiKeys, sessionStore, checks, registration };
  const accounts = new Accounts({ ...ofAccounts, signupMicro: config.signupCredits * 1_000_000 });
  const closings = new Closings({ ...shared, apiKeys, checks, keptDays: config.closedAccountDays });
  const sessions = new Sessions({ ...shared, apiKeys, sessionStore, resetLinkStore });
  const administration = new Administration({ ...shared, accounts, apiKeys, authenticator, checks });
  const accountChanges = new AccountChanges({ ...shared, ...confirming, checks });
  const byLink = oneTimeLinks(
    { ...shared, ...written, accounts, registration, domains: registrationDomains(config) },
    metadata,
  );
  if (config.adminKey !== '') await administration.ensureAdminKey(config.adminKey);
  const { publicUrl } = config;
  const origin = { secureCookies: publicUrl.startsWith('https:'), publicUrl, apiUrl };
  return {
    apiKeys,
    accessKeys,
    administration,
    accountChanges,
    setupLinks: byLink.setupLinks,
    authenticator,
    passwordChecks: checks,
    linkKeys: linkKeysOf(apiKeys, authenticator),
    sharePasswords: new GuardedPasswords({ passwords, throttle }),
    rightsHolders: new RightsHolders({ store, clock, apiKeys }),
    directory: new AccountDirectory({ store }),
    routes: accountsRoutes({
      ...origin,
      accounts,
      checks,
      closings,
      apiKeys,
      accessKeys,
      clientLogins,
      sessions,
      ...byLink,
      resetLinks,
      mailedLinks,
      tickets,
      administration,
      accountExports: exportsOf({ ...shared, ...exports, accessKeys, checks }),
    }),
    jobs: jobsOf({ authenticator, closings, administration, sessions }),
    gauges: (meters: Meters) => meterSignIns(meters, sessions),
    flush: () => authenticator.flush(),
  };
}

/** Keys that signed links depend on. */
function linkKeysOf(apiKeys: ApiKeys, authenticator: Authenticator) {
  return {
    currentId: (accountId: number) => apiKeys.currentId(accountId),
    holderOf: (keyId: string) => authenticator.holderOf(keyId),
  };
}

function exportsOf(deps: AccountExportsDeps & ExportedAccountDeps): AccountExports {
  return new AccountExports({ ...deps, sources: [new ExportedAccount(deps), ...deps.sources] });
}

function jobsOf(of: {
  readonly authenticator: Authenticator;
  readonly closings: Closings;
  readonly administration: Administration;
  readonly sessions: Sessions;
}): Job[] {
  const { authenticator, closings, administration, sessions } = of;
  const expire = () => administration.expire();
  return [
    { name: 'flush key use', everyMs: FLUSH_MS, per: 'node', run: () => authenticator.flush() },
    { name: 'remove closed accounts', everyMs: CLOSING_MS, per: 'cluster', run: () => closings.removeDue() },
    { name: 'suspend expired accounts', everyMs: MINUTE_MS, per: 'cluster', run: expire },
    { name: 'sweep sessions', everyMs: HOUR_MS, per: 'cluster', run: () => sessions.sweep() },
  ];
}

function mailedLinksOf(
  deps: ResetLinksDeps & Omit<MailedLinksDeps, 'emailLinkStore' | 'resetLinks'>,
  reads: Metadata,
) {
  const resetLinks = new ResetLinks(deps);
  const emailLinkStore = new EmailLinkStore({ reads });
  const mailedLinks = new MailedLinks({ ...deps, emailLinkStore, resetLinks });
  const askToConfirm = mailedLinks.askToConfirm.bind(mailedLinks);
  return { resetLinks, mailedLinks, confirming: { sendsMail: deps.outbox.isOn, askToConfirm } };
}

type LinksDeps = Omit<SetupLinksDeps, 'setupLinkStore'> & Omit<InvitationsDeps, 'invitationStore'>;

function oneTimeLinks(deps: LinksDeps, reads: Metadata) {
  return {
    setupLinks: new SetupLinks({ ...deps, setupLinkStore: new SetupLinkStore({ reads }) }),
    invitations: new Invitations({ ...deps, invitationStore: new InvitationStore({ reads }) }),
  };
}

function meterSignIns(meters: Meters, sessions: Sessions): void {
  const help = 'Sign-ins with a wrong name or password';
  meters.gauge('cloudlet_failed_sign_ins_total', {
    help,
    type: 'counter',
    read: () => sessions.failedLogins,
  });
}
