/**
 * Billing's implementations of the ports of machines, object storage and databases. Their usage
 * statements belong to the very commit of the change: usage is counted if and only if the change
 * happened.
 */

import type { RowIdOf, Statement } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { Prices } from '../catalog/prices.ts';
import type { Quotas } from '../catalog/quotas.ts';
import type { BillingAccountStore, MemoryShares } from '../credit/billing-account-store.ts';
import { burnNanoOf, type Credit } from '../credit/credit.ts';
import type { Holds } from './holds.ts';
import { METERS } from './meters.ts';
import type { Rating } from './rating.ts';
import { type SteadyClock, ticksOf } from './steady-clock.ts';
import type { UsageStore } from './usage-store.ts';

/** Facts of a machine for its charges. */
export interface UsedVm {
  readonly vm_id: string;
  readonly account_id: number;
  readonly name: string;
  readonly instance_type: string;
  readonly disk_gb: number;
}

/** Facts of a bucket for its charges. */
export interface UsedBucket {
  /** Row id; RowIdOf if this commit creates the bucket. */
  readonly id: number | RowIdOf;
  readonly account_id: number;
  readonly name: string;
}

/** Facts of a database for its charges. */
export interface UsedDatabase {
  readonly database_id: string;
  readonly account_id: number;
  readonly name: string;
  readonly engine: string;
}

interface ChargesDeps {
  readonly usage: Usage;
  readonly quotas: Quotas;
  readonly prices: Prices;
  readonly clock: Clock;
  readonly credit: Credit;
}

interface VmChargesDeps extends ChargesDeps {
  readonly rating: Pick<Rating, 'rateUsage'>;
  readonly holds: Holds;
  readonly accounts: BillingAccountStore;
}

interface WantedVm {
  readonly account_id: number;
  readonly plan: string;
  readonly instance_type: string;
}

type PricedVm = Pick<UsedVm, 'instance_type' | 'disk_gb'>;
type CountedVm = UsedVm & { readonly vcpus: number };

interface StartedVm {
  readonly account_id: number;
  readonly memory_mb: number;
}

interface KnownBucket {
  readonly id: number;
  readonly account_id: number;
}

interface PricedDatabase {
  readonly engine: string;
  readonly size_bytes: number;
}

const NANO = 1e9;

export function vmCharges({ usage, rating, holds, prices, quotas, ...deps }: VmChargesDeps) {
  const { accounts, clock, credit } = deps;
  return {
    /** The error mentions the price of an hour of the type. */
    assertCredit: ({ account_id, plan, instance_type }: WantedVm) =>
      credit.assertCredit(account_id, holds.hourMicro(plan, instance_type) || undefined),

    /** '' if the account does not exist. Later requests for prices then use the current ones. */
    async planOf(accountId: number): Promise<string> {
      await prices.load();
      return (await accounts.find(accountId))?.plan ?? '';
    },

    isTrusted: (accountId: number) => accounts.isTrusted(accountId),

    /** Current price of a running hour, credits. */
    pricePerHour: (plan: string, variant: string) =>
      Number(prices.shownNano({ meter: 'vm.time', variant, plan, at: clock.now() })) / NANO,

    /** Current price of the disk, credits per hour that it exists. */
    diskPricePerHour(plan: string, { instance_type: variant, disk_gb: level }: PricedVm): number {
      const meter = 'vm.disk';
      const priceNano = prices.shownNano({ meter, variant, plan, at: clock.now() });
      return Number(burnNanoOf({ meter, level }, priceNano)) / NANO;
    },

    created: async (vm: CountedVm) => [...(await quotas.claimVm(vm)), ...usage.vmCreated(vm)],
    async resized(before: CountedVm, after: CountedVm): Promise<readonly Statement[]> {
      await rating.rateUsage(after.account_id);
      return [...(await quotas.resizeVm(before, after)), ...usage.vmResized(after)];
    },

    async diskChanged(before: UsedVm, after: UsedVm): Promise<readonly Statement[]> {
      const claim = await quotas.claimDisk(after.account_id, after.disk_gb - before.disk_gb);
      return [...claim, ...usage.vmDiskChanged(after)];
    },
    assertDisk: async (accountId: number, moreGb: number) => void (await quotas.claimDisk(accountId, moreGb)),
    renamed: (vm: Pick<UsedVm, 'vm_id' | 'name'>) => usage.vmRenamed(vm),
    memoryTaken: (vm: StartedVm) => quotas.claimMemory(vm),

    async shareTaken(vm: StartedVm, { allMb, eachMb }: MemoryShares): Promise<readonly Statement[]> {
      const { account_id, memory_mb: wantedMb } = vm;
      if (await accounts.isTrusted(account_id)) return [];
      const ownMb = await accounts.memoryMb(account_id);
      if (ownMb + wantedMb > eachMb) {
        const said = `your machines use ${ownMb} MiB of the ${eachMb} MiB that one account`;
        throw noShareLeft(wantedMb, `${said} without granted credits may have`);
      }
      const takenMb = await accounts.untrustedMemoryMb();
      if (takenMb + wantedMb > allMb) {
        const said = `other accounts use ${takenMb} MiB of the ${allMb} MiB that accounts`;
        throw noShareLeft(wantedMb, `${said} without granted credits may have together`);
      }
      return [accounts.expectUntrustedMemory(account_id, { allMb, eachMb })];
    },

    reserved: (vm: UsedVm) => holds.place(vm),
    released: (vm: UsedVm) => holds.release(vm),
    started: (vm: UsedVm, at: number) => usage.vmStarted(vm, at),
    stopped: (vm: UsedVm, at: number) => usage.vmStopped(vm, at),
    sent: (vmId: string, bytes: number) => usage.vmSent(vmId, bytes),
    deleted: (vm: CountedVm) => [...quotas.releaseVm(vm), ...usage.vmDeleted(vm)],
  };
}

export function storageCharges({ usage, quotas, credit }: ChargesDeps) {
  return {
    assertCredit: (accountId: number) => credit.assertCredit(accountId),
    assertUploads: (accountId: number, bytes: number) => quotas.assertUploads(accountId, bytes),

    bucketCreated: async (bucket: UsedBucket) => [
      ...(await quotas.claimBucket(bucket.account_id)),
      ...usage.bucketCreated(bucket),
    ],

    bucketDeleted: ({ id, account_id }: KnownBucket) => [
      ...quotas.releaseBucket(account_id),
      ...usage.bucketDeleted(id),
    ],

    async bytesKept(
      { id, account_id }: KnownBucket,
      bytes: number,
      { isRemoval }: { readonly isRemoval: boolean } = { isRemoval: false },
    ): Promise<readonly Statement[]> {
      if (bytes === 0) return [];
      const claim = bytes > 0 && !isRemoval ? await quotas.claimStorage(account_id, bytes) : [];
      return [...claim, usage.bucketChanged(id, bytes)];
    },

    bytesStored: (accountId: number, bytes: number) => quotas.bytesStored(accountId, bytes),
    bytesSent: (bucketId: number, bytes: number) => usage.bucketSent(bucketId, bytes),
  };
}

export function databaseCharges({ usage, quotas, prices, clock, credit }: ChargesDeps) {
  return {
    assertCredit: (accountId: number) => credit.assertCredit(accountId),
    created: ({ account_id }: UsedDatabase) => quotas.claimDatabase(account_id),
    opened: (database: UsedDatabase, sizeBytes: number) => [usage.databaseOpened(database, sizeBytes)],
    dumpKept: (database: UsedDatabase, bytes: number) => [
      usage.dumpRemoved(database.database_id),
      usage.databaseOpened(database, bytes),
    ],
    dumpRemoved: ({ database_id }: UsedDatabase) => [usage.dumpRemoved(database_id)],
    resized: ({ database_id }: UsedDatabase, sizeBytes: number) => [
      usage.databaseResized(database_id, sizeBytes),
    ],
    renamed: ({ database_id, name }: UsedDatabase) => usage.databaseRenamed(database_id, name),
    sent: (databaseId: string, bytes: number) => usage.databaseSent(databaseId, bytes),
    abandoned: ({ account_id }: UsedDatabase) => quotas.releaseDatabase(account_id),
    deleted: ({ account_id, database_id }: UsedDatabase) => [
      ...quotas.releaseDatabase(account_id),
      ...usage.databaseDeleted(database_id),
    ],

    pricePerHour(plan: string, { engine, size_bytes: level }: PricedDatabase): number {
      const meter = 'database.storage';
      const priceNano = prices.shownNano({ meter, variant: engine, plan, at: clock.now() });
      return Number(burnNanoOf({ meter, level }, priceNano)) / NANO;
    },
  };
}

function noShareLeft(wantedMb: number, why: string): AppError {
  return new AppError(
    'insufficient_capacity',
    `There is no memory left for a machine of ${wantedMb} MiB: ${why}`,
    {
      hint:
        'Stop another machine, try again later, or ask your administrator to grant you credits: accounts with granted credits can use all of the memory. ' +
        'An operator sets the share: CLOUDLET_UNGRANTED_MEMORY_PERCENT',
      retryAfterSeconds: 30,
    },
  );
}

const DATABASE_METERS = ['database.storage', 'egress'] as const;
const VM_METERS = ['vm.time', 'vm.disk', 'egress'] as const;
/** Maximum time between a rating and the commit that relies on it, on a busy host. */
const RATED_WITHIN_MS = 5000;

export interface UsageDeps {
  readonly store: UsageStore;
  readonly steady: SteadyClock;
}

export class Usage {
  readonly #deps: UsageDeps;

  constructor(deps: UsageDeps) {
    this.#deps = deps;
  }

  vmCreated({ vm_id, account_id, name, instance_type, disk_gb }: UsedVm): Statement[] {
    const { store, steady } = this.#deps;
    const now = ticksOf(METERS['vm.time'], steady.now());
    const line = { resourceId: vm_id, accountId: account_id, name, variant: instance_type, now };
    return [
      store.open({ ...line, meter: 'vm.time', level: 0 }),
      store.open({ ...line, meter: 'vm.disk', level: disk_gb }),
    ];
  }

  /** `at`: when its processor began to run, wall time. */
  vmStarted({ vm_id }: UsedVm, at: number): Statement[] {
    return [this.#vmRuns(vm_id, 1, at)];
  }

  /** `at`: when the run ended, wall time; may be long ago. */
  vmStopped({ vm_id }: UsedVm, at: number): Statement[] {
    return [this.#vmRuns(vm_id, -1, at)];
  }

  /** For a machine that is off, right after its usage was rated. */
  vmResized(vm: UsedVm): Statement[] {
    const { vm_id: resourceId, instance_type } = vm;
    const { store, steady } = this.#deps;
    const now = ticksOf(METERS['vm.disk'], steady.now());
    const ratedTo = now - RATED_WITHIN_MS / METERS['vm.disk'].tickMs;
    return [
      store.setVariant({ meter: 'vm.time', resourceId }, instance_type, ratedTo),
      store.setVariant({ meter: 'vm.disk', resourceId }, instance_type, ratedTo),
      ...this.vmDiskChanged(vm),
    ];
  }

  vmDiskChanged({ vm_id: resourceId, disk_gb }: Pick<UsedVm, 'vm_id' | 'disk_gb'>): Statement[] {
    const { store, steady } = this.#deps;
    const now = ticksOf(METERS['vm.disk'], steady.now());
    return [store.setLevel({ meter: 'vm.disk', resourceId }, disk_gb, now)];
  }

  vmRenamed({ vm_id: resourceId, name }: Pick<UsedVm, 'vm_id' | 'name'>): Statement[] {
    return VM_METERS.map((meter) => this.#deps.store.rename({ meter, resourceId }, name));
  }

  vmDeleted({ vm_id }: UsedVm): Statement[] {
    const { store, steady } = this.#deps;
    const used = (['vm.time', 'vm.disk'] as const).map((meter) =>
      store.close({ meter, resourceId: vm_id }, ticksOf(METERS[meter], steady.now())),
    );
    return [...used, store.closeEgress(vm_id)];
  }

  /** Adds `bytes` that the machine sent through tunnels. Does nothing if it was deleted. */
  vmSent(vmId: string, bytes: number): Statement {
    const { store, steady } = this.#deps;
    return store.addEgress('vm', vmId, { bytes, now: ticksOf(METERS.egress, steady.now()) });
  }

  bucketCreated({ id, account_id, name }: UsedBucket): Statement[] {
    const { store, steady } = this.#deps;
    return (['storage', 'egress'] as const).map((meter) => {
      const now = ticksOf(METERS[meter], steady.now());
      return store.open({ meter, resourceId: id, accountId: account_id, name, variant: '', level: 0, now });
    });
  }

  /** Adds `bytes` (negative: removes) to the stored bytes. */
  bucketChanged(id: number, bytes: number): Statement {
    const { store, steady } = this.#deps;
    return store.change({ meter: 'storage', resourceId: id }, bytes, ticksOf(METERS.storage, steady.now()));
  }

  bucketDeleted(id: number): Statement[] {
    const { store, steady } = this.#deps;
    return (['storage', 'egress'] as const).map((meter) =>
      store.close({ meter, resourceId: id }, ticksOf(METERS[meter], steady.now())),
    );
  }

  /** Adds `bytes` sent from the bucket's objects. */
  bucketSent(id: number, bytes: number): Statement {
    const { store, steady } = this.#deps;
    return store.add({ meter: 'egress', resourceId: id }, bytes, ticksOf(METERS.egress, steady.now()));
  }

  /** Also for a deleted database that is restored. */
  databaseOpened({ database_id, account_id, name, engine }: UsedDatabase, bytes: number): Statement {
    const now = this.#databaseTicks();
    const line = { meter: 'database.storage', resourceId: database_id, accountId: account_id, now } as const;
    return this.#deps.store.reopen({ ...line, name, variant: engine, level: bytes });
  }

  /** Sets the size of the database, bytes. Does nothing for a deleted one. */
  databaseResized(databaseId: string, bytes: number): Statement {
    const line = { meter: 'database.storage', resourceId: databaseId } as const;
    return this.#deps.store.setLevel(line, bytes, this.#databaseTicks());
  }

  databaseRenamed(databaseId: string, name: string): Statement[] {
    return DATABASE_METERS.map((meter) => this.#deps.store.rename({ meter, resourceId: databaseId }, name));
  }

  databaseDeleted(databaseId: string): Statement[] {
    const { store } = this.#deps;
    const line = { meter: 'database.storage', resourceId: databaseId } as const;
    return [store.close(line, this.#databaseTicks()), store.closeEgress(databaseId)];
  }

  /** Ends the charge for a last dump, if any. */
  dumpRemoved(databaseId: string): Statement {
    const line = { meter: 'database.storage', resourceId: databaseId } as const;
    const { sql, params } = this.#deps.store.close(line, this.#databaseTicks());
    return { sql, params };
  }

  /** Adds `bytes` that the database sent to its user. Does nothing if it was purged. */
  databaseSent(databaseId: string, bytes: number): Statement {
    const { store, steady } = this.#deps;
    return store.addEgress('database', databaseId, { bytes, now: ticksOf(METERS.egress, steady.now()) });
  }

  #databaseTicks(): number {
    return ticksOf(METERS['database.storage'], this.#deps.steady.now());
  }

  #vmRuns(vmId: string, delta: 1 | -1, at: number): Statement {
    const { store, steady } = this.#deps;
    const now = ticksOf(METERS['vm.time'], steady.at(at));
    return store.change({ meter: 'vm.time', resourceId: vmId }, delta, now);
  }
}
