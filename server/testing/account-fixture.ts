/** Account services on a real database in a temporary directory, with a fake clock. For tests. */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AccountChanges } from '../accounts/account-changes.ts';
import { Accounts } from '../accounts/accounts.ts';
import { Administration } from '../accounts/administration.ts';
import { Closings } from '../accounts/closings.ts';
import { closeAccount, removeAccount } from '../accounts/closings-store.ts';
import { Invitations } from '../accounts/invitations/invitations.ts';
import { InvitationStore } from '../accounts/invitations/invitations-store.ts';
import { AccessKeys } from '../accounts/keys/access-keys.ts';
import { ApiKeys } from '../accounts/keys/api-keys.ts';
import { EmailLinkStore, ResetLinkStore, SetupLinkStore } from '../accounts/links/links-store.ts';
import { MailedLinks } from '../accounts/links/mailed-links.ts';
import { ResetLinks } from '../accounts/links/reset-links.ts';
import { SetupLinks } from '../accounts/links/setup-links.ts';
import { Authenticator } from '../accounts/sign-in/authenticator.ts';
import { LoginThrottle } from '../accounts/sign-in/login-throttle.ts';
import { PasswordChecks } from '../accounts/sign-in/password-checks.ts';
import { type PasswordCost, Passwords } from '../accounts/sign-in/passwords.ts';
import type { ReopeningDeps } from '../accounts/sign-in/reopening.ts';
import { Sessions } from '../accounts/sign-in/sessions.ts';
import { SessionStore } from '../accounts/sign-in/sessions-store.ts';
import { AccountStore } from '../accounts/store.ts';
import { AuditLog } from '../audit/audit-log.ts';
import { AuditStore } from '../audit/store.ts';
import { Trail } from '../audit/trail.ts';
import { CatalogStore } from '../billing/catalog/catalog-store.ts';
import { BillingAccountStore } from '../billing/credit/billing-account-store.ts';
import { transferStatements } from '../billing/ledger/ledger.ts';
import { type Call, NOBODY, type Principal } from '../calls/principal.ts';
import { Tickets } from '../calls/tickets.ts';
import { AGELESS } from '../metadata/ages.ts';
import { Bus } from '../metadata/bus.ts';
import { BACKGROUND, Changes } from '../metadata/change.ts';
import type { Metadata, Statement } from '../metadata/metadata.ts';
import { Alarms } from '../platform/alarms.ts';
import { type Clock, FakeClock } from '../platform/clock.ts';
import { randomSecret } from '../platform/ids.ts';
import type { Sealer } from '../platform/master-key.ts';
import { ALONE } from '../platform/membership.ts';
import { eventStatements } from '../webhooks/events-store.ts';
import { openMailFixture } from './mail-fixture.ts';
import { openTestMetadata } from './new-metadata.ts';

/** Maximum number of access keys of one account. */
export const TEST_ACCESS_KEYS = 100;

/** AES-256-GCM with the context authenticated, like the master key. */
export function testSealer(key = randomSecret(32)): Sealer {
  return {
    seal(plaintext, context) {
      const nonce = randomSecret(12);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
      return Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
    },
    unseal(sealed, context) {
      const bytes = Buffer.from(sealed);
      const cipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12));
      cipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-16));
      return Buffer.concat([cipher.update(bytes.subarray(12, -16)), cipher.final()]);
    },
  };
}

/** Tickets of a cloud with one process. */
export function testTickets(clock: Clock): Tickets {
  const commit = () => Promise.reject(new Error('tickets of one process store nothing'));
  const metadata = { commit, get: () => undefined, all: () => [] };
  return new Tickets({ clock, sealer: testSealer(), metadata, membership: ALONE });
}

/** The secrets that a browser sends after a login, for the authenticator. */
export function shown({ cookie, token }: { readonly cookie: string; readonly token: string }) {
  return { session: { cookies: [cookie], token } };
}

/** A call whose response is not stored. */
export function by(principal: Principal): Call {
  return { principal, ...BACKGROUND };
}

/** A new account, as the principal of its own key. */
export async function newPrincipal(accounts: Accounts, username: string): Promise<Principal> {
  const fields = { username, email: `${username}@example.org`, password: 'correct horse' };
  const { id } = await accounts.register(BACKGROUND, fields);
  return { ...NOBODY, accountId: id, username, via: 'key', scopes: ['*'], credentialId: `k-${id}` };
}

/** Cheap hashes, so that tests of rules do not wait for memory. */
const CHEAP: PasswordCost = { memoryKib: 64, passes: 1 };

export interface AccountFixtureOptions {
  readonly cost?: PasswordCost;
  readonly loginFailures?: number;
  readonly closedAccountDays?: number;
  /** Default: its own. */
  readonly sealer?: Sealer;
  /** URL of a mail server; default: none. */
  readonly smtpUrl?: string;
  readonly registration?: 'open' | 'invitation' | 'domain' | 'closed';
  /** Default: SQLite in the directory. */
  readonly openMetadata?: (directory: string, clock: FakeClock) => Promise<Metadata>;
}

const openSqlite = (directory: string, clock: FakeClock): Promise<Metadata> =>
  openTestMetadata({ directory, clock, alarms: new Alarms(clock) });

/** The part of billing in a new account. */
function termsIn(metadata: Metadata) {
  const [plans, accounts] = [new CatalogStore(metadata), new BillingAccountStore(metadata)];
  return {
    plans,
    assignPlan: (id: number, name: string) => plans.assignPlan(id, name),
    capNew: (id: number, micro: number) => accounts.capNew(id, micro),
  };
}

export type AccountFixture = Awaited<ReturnType<typeof openAccountFixture>>;

export async function openAccountFixture(options: AccountFixtureOptions = {}) {
  const { openMetadata: open = openSqlite, registration = 'open' } = options;
  const directory = await mkdtemp(join(tmpdir(), 'cloudlet-accounts-'));
  const clock = new FakeClock();
  const metadata = await open(directory, clock);
  const store = new AccountStore({ reads: metadata });
  const sessionStore = new SessionStore({ reads: metadata });
  const sealer = options.sealer ?? testSealer();
  const passwords = new Passwords({ cost: options.cost ?? CHEAP });
  const throttle = new LoginThrottle({ clock, freeFailures: options.loginFailures ?? 10 });
  const bus = new Bus();
  const changes = new Changes({ metadata, bus });
  const authenticator = new Authenticator({ store, changes, bus, ages: AGELESS, clock, sealer });
  const checks = new PasswordChecks({ store, sessionStore, changes, clock, passwords, throttle });
  const terms = termsIn(metadata);
  const base = { store, metadata, changes, clock, sealer, passwords, throttle, checks, bus, ...terms };
  const apiKeys = new ApiKeys(base);
  const transfer = transferStatements;
  const changed: number[] = [];
  const logged: object[] = [];
  const accountChanged = (accountId: number) => void changed.push(accountId);
  const reactivation = (accountId: number) => [new BillingAccountStore(metadata).resumeDue(accountId)];
  const audit = new Trail({ changes, clock, store: new AuditStore(metadata) });
  const opening = { apiKeys, reactivation, accountChanged };
  const mailed = mailedOf({ ...base, ...opening, sessionStore, logged }, options.smtpUrl ?? '');
  const own = { ...base, ...mailed, apiKeys, sessionStore, transfer, signupMicro, registration };
  const accounts = new Accounts(own);
  return {
    ...base,
    ...mailed,
    directory,
    authenticator,
    /** Accounts that billing was notified of. */
    changed,
    apiKeys,
    accounts,
    accessKeys: new AccessKeys({ ...base, maxKeys: TEST_ACCESS_KEYS, dataUrl }),
    sessionStore,
    closings: new Closings({
      ...base,
      ...opening,
      reads: metadata,
      audit,
      keptDays: options.closedAccountDays ?? 0,
    }),
    sessions: new Sessions({
      ...base,
      ...opening,
      sessionStore,
      resetLinkStore: new ResetLinkStore({ reads: metadata }),
    }),
    accountChanges: new AccountChanges({ ...base, ...mailed, accountChanged, reactivation }),
    ...linksOf({ ...base, outbox: mailed.mail.outbox, accounts, registration, plans: terms.plans }),
    /** The entries of an account in the audit log, newest first, as its owner sees them. */
    auditOf: (accountId: number) => auditOf(metadata, accountId),
    commitsDuring: (work: () => Promise<unknown>) => commitsDuring(metadata, work),
    /** Lines of the log. */
    logged,
    administration: new Administration({
      ...base,
      ...opening,
      reads: metadata,
      audit,
      accounts,
      authenticator,
      transfer,
    }),
    /** Removes an account whose owner has closed it long ago. */
    removeAccount: ({ accountId }: Principal) => {
      const at = clock.now();
      return metadata.commit([...closeAccount(accountId, at), ...removeAccount(accountId, at)]);
    },
    async close() {
      await metadata.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const ALL = { actor: '', action: '', target: '', outcome: '', from: 0, to: 0 };

async function auditOf(metadata: Metadata, accountId: number) {
  const log = new AuditLog(new AuditStore(metadata));
  return Array.fromAsync(log.list({ ...ALL, accountId }, { before: 0, limit: 100 }));
}

/** The statements of each commit while `work` runs. */
async function commitsDuring(metadata: Metadata, work: () => Promise<unknown>) {
  const commits: (readonly Statement[])[] = [];
  const { commit } = metadata;
  metadata.commit = (statements) => {
    commits.push(statements);
    return commit.call(metadata, statements);
  };
  try {
    await work();
    return commits;
  } finally {
    metadata.commit = commit;
  }
}

const signupMicro = 10_000_000;
const apiUrl = () => 'http://127.0.0.1:8080';
const dataUrl = () => 'http://127.0.0.1:9000';

/** Mail, and the services that send it. */
function mailedOf(
  deps: Pick<ConstructorParameters<typeof MailedLinks>[0], 'store' | 'changes' | 'clock' | 'checks'> &
    Pick<ConstructorParameters<typeof ResetLinks>[0], 'sessionStore' | 'passwords' | 'throttle'> &
    ReopeningDeps & {
      readonly metadata: Metadata;
      readonly clock: FakeClock;
      readonly sealer: Sealer;
      readonly logged: object[];
    },
  url: string,
) {
  const reads = deps.metadata;
  const mail = openMailFixture({ ...deps, url });
  const resetLinks = new ResetLinks({
    ...deps,
    apiUrl,
    resetLinkStore: new ResetLinkStore({ reads }),
    announce: eventStatements,
    log: (facts, message) => void deps.logged.push({ ...facts, message }),
  });
  const emailLinkStore = new EmailLinkStore({ reads });
  const own = { ...deps, emailLinkStore, resetLinks, outbox: mail.outbox, mailUrl: apiUrl };
  const mailedLinks = new MailedLinks(own);
  const askToConfirm = mailedLinks.askToConfirm.bind(mailedLinks);
  return { mail, mailedLinks, resetLinks, sendsMail: mail.outbox.isOn, askToConfirm };
}

/** Services of links that create accounts. */
function linksOf({
  plans,
  ...deps
}: Omit<
  ConstructorParameters<typeof Invitations>[0],
  'invitationStore' | 'hasPlan' | 'apiUrl' | 'mailUrl' | 'domains'
> & {
  readonly metadata: Metadata;
  readonly plans: CatalogStore;
}) {
  const reads = deps.metadata;
  return {
    setupLinks: new SetupLinks({ ...deps, setupLinkStore: new SetupLinkStore({ reads }) }),
    invitations: new Invitations({
      ...deps,
      apiUrl,
      mailUrl: apiUrl,
      domains: ['example.org'],
      invitationStore: new InvitationStore({ reads }),
      hasPlan: async (name) => (await plans.findPlan(name)) !== undefined,
    }),
  };
}
