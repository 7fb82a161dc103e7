/** Everything of compute on a real database, with an engine and a front that obey. For tests. */
import type { Principal } from '../accounts/principal.ts';
import { Credit } from '../billing/credit.ts';
import { CreditStore } from '../billing/credit-store.ts';
import { Actions } from '../compute/actions.ts';
import { AddressPool } from '../compute/addresses.ts';
import { Changes } from '../compute/changes.ts';
import { Exposures } from '../compute/exposures.ts';
import type { Hypervisor } from '../compute/hypervisor.ts';
import { ImageStore } from '../compute/image-store.ts';
import { Images } from '../compute/images.ts';
import { Machines } from '../compute/machines.ts';
import { Power } from '../compute/power.ts';
import { Recovery } from '../compute/recovery.ts';
import { Removal } from '../compute/removal.ts';
import { Runs } from '../compute/runs.ts';
import { VmStore } from '../compute/store.ts';
import { Supervisor } from '../compute/supervisor.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { openAccountHouse } from './account-house.ts';
import { ScriptedFront } from './scripted-front.ts';
import { Engine, ScriptedHypervisor } from './scripted-hypervisor.ts';

const TEST_POOL = '127.80.0.0/16';
export const TEST_ORPHAN_GRACE_MS = 600_000;

export interface ComputeOptions {
  readonly pool?: string;
  readonly hostBootedAt?: number;
  readonly survivesRestart?: boolean;
  /** Stands between the domain and the stores, to break there. */
  readonly wrapMetadata?: (metadata: Metadata) => Metadata;
  readonly wrapHypervisor?: (hypervisor: Hypervisor) => Hypervisor;
}

export interface UsageRow {
  readonly event: string;
  readonly at: number;
}

export type ComputeHouse = Awaited<ReturnType<typeof openComputeHouse>>;
export type Compute = Awaited<ReturnType<ComputeHouse['open']>>;

/** The house itself lasts; `open` is a start of Cloudlet in it. */
export async function openComputeHouse() {
  const house = await openAccountHouse();
  const { metadata, clock, accounts } = house;
  const engine = new Engine();
  const store = new VmStore(metadata);
  const credit = new Credit({ store: new CreditStore(metadata) });
  const base = { metadata, clock, engine, requireCredit: (id: number) => credit.require(id) };
  return {
    ...{ metadata, clock, engine, store },
    authenticator: house.authenticator,
    /** The API key of a new account. */
    async newKey(username: string): Promise<string> {
      const fields = { username, email: `${username}@example.org`, password: 'correct horse' };
      return (await accounts.register(fields, () => [])).api_key ?? '';
    },
    open: (options: ComputeOptions = {}) => openCompute(base, options),
    /** A new account, as its own key's principal. */
    async newPrincipal(username: string): Promise<Principal> {
      const fields = { username, email: `${username}@example.org`, password: 'correct horse' };
      const { id } = await accounts.register(fields, () => []);
      const rights = { isAdmin: false, scopes: ['*'], bucketLimits: null, via: 'key' } as const;
      return { accountId: id, username, ...rights, credentialId: `k-${id}` };
    },
    /** Of one machine, or of all, oldest first. */
    async usage(vmId?: string): Promise<UsageRow[]> {
      const rows = await metadata.all<UsageRow & { vm_id: string }>(
        'SELECT vm_id, event, at FROM vm_usage ORDER BY id',
      );
      return rows
        .filter((row) => vmId === undefined || row.vm_id === vmId)
        .map(({ event, at }) => ({ event, at }));
    },
    /** Nobody has credits any more. */
    async spendAll(): Promise<void> {
      await metadata.commit([{ sql: 'UPDATE accounts SET credits_micro = 0', params: [] }]);
    },
    close: () => house.close(),
  };
}

interface ComputeBase {
  readonly metadata: Metadata;
  readonly clock: Awaited<ReturnType<typeof openAccountHouse>>['clock'];
  readonly engine: Engine;
  readonly requireCredit: (accountId: number) => Promise<void>;
}

async function openCompute({ engine, ...base }: ComputeBase, options: ComputeOptions) {
  const { clock, requireCredit } = base;
  const { survivesRestart = true } = options;
  const scripted = new ScriptedHypervisor({ engine, clock, survivesRestart });
  const hypervisor = options.wrapHypervisor?.(scripted) ?? scripted;
  const metadata = options.wrapMetadata?.(base.metadata) ?? base.metadata;
  const store = new VmStore(metadata);
  const front = new ScriptedFront();
  const reports: string[] = [];
  const shared = {
    ...{ metadata, clock, store, hypervisor, front, requireCredit, graceMs: 10_000 },
    report: (vmId: string, what: string, error: unknown) => void reports.push(`${vmId} ${what}: ${error}`),
    onRefused: () => {},
  };
  const addresses = new AddressPool(options.pool ?? TEST_POOL, await store.addresses());
  const images = new Images({ store: new ImageStore(metadata) });
  const exposures = new Exposures(shared);
  const machines = new Machines({ ...shared, images, addresses, exposures, outbound: false });
  const actions = new Actions();
  const changes = new Changes(shared);
  const runs = new Runs({ ...shared, changes, exposures });
  const parts = { machines, actions, changes, runs, exposures, addresses };
  const power = new Power({ ...shared, ...parts });
  const removal = new Removal({ ...shared, ...parts });
  const hostBootedAt = options.hostBootedAt ?? 0;
  const recovery = new Recovery({ ...shared, ...parts, removal, hostBootedAt });
  const supervisor = new Supervisor({
    ...{ ...shared, ...parts, recovery },
    orphanGraceMs: TEST_ORPHAN_GRACE_MS,
  });
  return { ...parts, images, power, removal, recovery, supervisor, scripted, front, reports };
}
