/** Compute services on a real database, with a scripted engine and ingress. For tests. */
import { pino } from 'pino';
import { BillingAccountStore } from '../billing/credit/billing-account-store.ts';
import { transferStatements } from '../billing/ledger/ledger.ts';
import { openBilling } from '../billing/part.ts';
import type { Call } from '../calls/principal.ts';
import { BUILT_IN } from '../cloud/catalog.ts';
import type { Hypervisor } from '../compute/hypervisor.ts';
import { ImageSources } from '../compute/images/image-sources.ts';
import { KnownImageAddresses } from '../compute/images/known-image-fetch.ts';
import { AddressPool } from '../compute/machines/addresses.ts';
import type { OpenFiles } from '../compute/machines/machines.ts';
import type { VmBilling } from '../compute/machines/vm-billing.ts';
import { VmStore } from '../compute/machines/vm-store.ts';
import { assembleCompute } from '../compute/part.ts';
import { PublishedPorts, type PublishingRules } from '../compute/ports/published-ports.ts';
import { PublishedPortsStore } from '../compute/ports/published-ports-store.ts';
import type { NetworkServices } from '../compute/private-network.ts';
import { TcpListeners } from '../drivers/public-listeners/public-listeners.ts';
import { SafeFetch } from '../drivers/safe-fetch/safe-fetch.ts';
import { AGELESS } from '../metadata/ages.ts';
import { BACKGROUND, Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { RestingNamesStore } from '../metadata/resting-names-store.ts';
import { Alarms } from '../platform/alarms.ts';
import { SweepGuard } from '../platform/background/sweep-guard.ts';
import { systemClock } from '../platform/clock.ts';
import { ALONE } from '../platform/membership.ts';
import { DiskShares, type SharedDisk } from '../resources/disk-shares.ts';
import { eventStatements } from '../webhooks/events-store.ts';
import { by, newPrincipal, openAccountFixture } from './account-fixture.ts';
import { Engine, ScriptedHypervisor } from './scripted-hypervisor.ts';
import { ScriptedIngress } from './scripted-ingress.ts';

const TEST_POOL = '127.80.0.0/16';
const AMPLE: SharedDisk = { totalBytes: 2 ** 40, freeBytes: 2 ** 40 };
const NO_PUBLISHING: PublishingRules = {
  range: null,
  reserved: new Set(),
  domain: '',
  max: 20,
  maxConnections: 100,
};
export const TEST_ORPHAN_GRACE_MS = 600_000;

export interface ComputeOptions {
  readonly pool?: string;
  readonly survivesRestart?: boolean;
  readonly imageFolders?: readonly string[];
  readonly maxImageBytes?: number;
  /** Default: no images are downloaded by name. */
  readonly imageMirror?: string;
  /** Ports of 127.0.0.1 that may be published; default: none. */
  readonly publishing?: PublishingRules;
  /** Default: 100. */
  readonly ungrantedMemoryPercent?: number;
  /** Whether machines may open outbound connections. */
  readonly outbound?: boolean;
  readonly assertSpace?: (bytes: number) => void;
  readonly disk?: () => SharedDisk;
  /** Address of the account's only database; default: it has none. */
  readonly databaseUri?: NetworkServices['uri'];
  readonly descriptors?: OpenFiles;
  /** Wraps the stores, so that they can fail. */
  readonly wrapMetadata?: (metadata: Metadata) => Metadata;
  readonly wrapHypervisor?: (hypervisor: Hypervisor) => Hypervisor;
}

export interface UsageRow {
  readonly event: string;
  readonly at: number;
}

export type ComputeFixture = Awaited<ReturnType<typeof openComputeFixture>>;
export type Compute = Awaited<ReturnType<ComputeFixture['open']>>;

/** The fixture itself remains; `open` starts Cloudlet in it. */
export async function openComputeFixture() {
  const fixture = await openAccountFixture();
  const { metadata, bus, clock, accounts } = fixture;
  const engine = new Engine();
  const store = new VmStore(metadata);
  const log = pino({ level: 'silent' });
  const { vmCharges: billing } = await openBilling({
    builtIn: BUILT_IN,
    clock,
    log,
    base: { metadata, bus, ages: AGELESS, alarms: new Alarms(clock), membership: ALONE },
  });
  const base = { metadata, clock, engine, billing };
  return {
    metadata,
    clock,
    engine,
    store,
    authenticator: fixture.authenticator,
    /** The API key of a new account. */
    async newKey(username: string): Promise<string> {
      const fields = { username, email: `${username}@example.org`, password: 'correct horse' };
      return (await accounts.register(BACKGROUND, fields)).api_key ?? '';
    },
    open: (options: ComputeOptions = {}) => openCompute(base, options),
    /** A call of a new account, with the key of that account. */
    newCall: async (username: string): Promise<Call> => by(await newPrincipal(accounts, username)),
    /** Usage of one machine, or of all, oldest first. */
    async usage(vmId?: string): Promise<UsageRow[]> {
      const rows = await metadata.all<UsageRow & { vm_id: string }>(
        'SELECT vm_id, event, at FROM vm_usage ORDER BY id',
      );
      return rows
        .filter((row) => vmId === undefined || row.vm_id === vmId)
        .map(({ event, at }) => ({ event, at }));
    },
    /** Suspends like an administrator; null: resumes. */
    async suspend(accountId: number, reason: string | null = 'a test'): Promise<void> {
      await metadata.commit([fixture.store.setSuspended(accountId, reason)]);
    },
    /** The account's own quotas. */
    async setQuotas(accountId: number, quotas: object): Promise<void> {
      const sql = 'UPDATE billing_accounts SET quotas = ? WHERE account_id = ?';
      await metadata.commit([{ sql, params: [JSON.stringify(quotas), accountId] }]);
    },
    /** Removes the quotas of the account. */
    async unlimit(accountId: number): Promise<void> {
      const sql = `UPDATE billing_accounts SET quotas = '{"vms":null,"vcpus":null}' WHERE account_id = ?`;
      await metadata.commit([{ sql, params: [accountId] }]);
    },
    /** Grants a credit like an administrator. */
    async grant(accountId: number): Promise<void> {
      const sides = { debit: 'system:grants', credit: `account:${accountId}`, amountMicro: 1_000_000 };
      const id = `grant-${accountId}`;
      const booking = { ...sides, id, code: 'admin_grant', reference: 'a test', at: clock.now() };
      await metadata.commit(transferStatements(booking));
    },
    /** States of machines, each with the code of its reason. */
    async reasons(vmIds: readonly string[]): Promise<string[]> {
      const rows = await Promise.all(vmIds.map((vmId) => store.find(vmId)));
      return rows.map((row) => `${row?.state} ${row?.reason_code}`);
    },
    /** Sets the credits of all accounts to zero. */
    async spendAll(): Promise<void> {
      await metadata.commit([{ sql: 'UPDATE accounts SET credits_micro = 0', params: [] }]);
    },
    close: () => fixture.close(),
  };
}

interface ComputeBase {
  readonly metadata: Metadata;
  readonly clock: Awaited<ReturnType<typeof openAccountFixture>>['clock'];
  readonly engine: Engine;
  readonly billing: VmBilling;
}

async function openCompute({ engine, ...base }: ComputeBase, options: ComputeOptions) {
  const { clock, billing } = base;
  const { survivesRestart = true } = options;
  const scripted = new ScriptedHypervisor({ engine, clock, survivesRestart });
  const hypervisor = options.wrapHypervisor?.(scripted) ?? scripted;
  const metadata = options.wrapMetadata?.(base.metadata) ?? base.metadata;
  const store = new VmStore(metadata);
  const ingress = new ScriptedIngress();
  const reports: string[] = [];
  const outbound = new SafeFetch({ clock: systemClock, allowed: ['127.0.0.0/8'] });
  const maxImageBytes = options.maxImageBytes ?? 2 ** 30;
  const onError = (vmId: string, what: string, error: unknown) =>
    void reports.push(`${vmId} ${what}: ${error}`);
  const accounts = new BillingAccountStore(metadata);
  const { disk = () => AMPLE, ungrantedMemoryPercent: percent = 100 } = options;
  const trusted = () => accounts.trusted();
  const note = (error: unknown) => void reports.push(`shares: ${error}`);
  const diskShares = new DiskShares({ clock, percent, disk, trusted, onError: note });
  const descriptors = options.descriptors ?? { assertFree: () => {} };
  const published = new PublishedPorts({
    changes: new Changes({ metadata }),
    store: new PublishedPortsStore(metadata),
    resting: new RestingNamesStore(metadata),
    clock,
    find: (principal, vmId) => parts.machines.findFor(principal, vmId),
    machine: (vmId) => parts.store.find(vmId),
    announce: eventStatements,
    open: (row) => parts.exposures.openPublished(row),
    listeners: new TcpListeners({ host: '127.0.0.1' }),
    rules: options.publishing ?? NO_PUBLISHING,
    billing,
    descriptors,
    sent: { note: () => {} },
    shownHost: '127.0.0.1',
    apiUrl: () => 'http://127.0.0.1:8080',
    dataUrl: () => 'http://127.0.0.1:9000',
    onError,
  });
  const parts = assembleCompute({
    published,
    services: servicesOf(options),
    points: { points: async () => [], during: () => Promise.reject(), find: async () => undefined },
    metadata,
    clock,
    hypervisor,
    ingress,
    billing,
    maxImageBytes,
    addresses: new AddressPool({
      network: options.pool ?? TEST_POOL,
      taken: await store.addresses(),
      host: ingress,
    }),
    descriptors,
    imageSources: new ImageSources({
      folders: options.imageFolders ?? [],
      outbound,
      maxBytes: maxImageBytes,
    }),
    imageAddresses: new KnownImageAddresses(outbound, options.imageMirror ?? 'off'),
    announce: eventStatements,
    sweepGuard: new SweepGuard({ alarms: new Alarms(clock), isOurs: async () => true }),
    assertSpace: options.assertSpace ?? (() => {}),
    onError,
    onClosedPorts: () => {},
    outbound: options.outbound ?? false,
    ungrantedMemoryPercent: percent,
    diskShares,
    graceMs: 10_000,
    orphanGraceMs: TEST_ORPHAN_GRACE_MS,
  });
  return { ...parts, diskShares, scripted, ingress, published, reports };
}

function servicesOf({ databaseUri }: ComputeOptions): NetworkServices {
  const number = databaseUri === undefined ? null : 1;
  return { find: async () => number, dial: async () => null, uri: databaseUri ?? (async () => null) };
}
