/** Billing's implementations of the interfaces that machines, object storage and databases own. */

import type { Statement } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Prices } from '../catalog/prices.ts';
import type { Quotas } from '../catalog/quotas.ts';
import type { BillingAccountStore } from '../credit/billing-account-store.ts';
import { burnNanoOf, type Credit } from '../credit/credit.ts';
import type { Holds } from './holds.ts';
import type { Usage, UsedBucket, UsedDatabase, UsedVm } from './usage.ts';

interface ChargesDeps {
  readonly usage: Usage;
  readonly quotas: Quotas;
  readonly prices: Prices;
  readonly clock: Clock;
  readonly credit: Credit;
}

interface VmChargesDeps extends ChargesDeps {
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

interface KnownBucket {
  readonly id: number;
  readonly account_id: number;
}

interface PricedDatabase {
  readonly engine: string;
  readonly size_bytes: number;
}

const NANO = 1e9;

export function vmCharges({ usage, holds, prices, quotas, accounts, clock, credit }: VmChargesDeps) {
  return {
    /** The refusal mentions the cost of an hour of the type. */
    assertCredit: ({ account_id, plan, instance_type }: WantedVm) =>
      credit.assertCredit(account_id, holds.hourMicro(plan, instance_type) || undefined),

    /** '' if the account does not exist. */
    planOf: async (accountId: number) => (await accounts.find(accountId))?.plan ?? '',

    /** Current price of a running hour, credits. */
    pricePerHour: (plan: string, variant: string) =>
      Number(prices.priceNano({ meter: 'vm.time', variant, plan, at: clock.now() })) / NANO,

    /** Current price of the disk, credits per hour that it exists. */
    diskPricePerHour(plan: string, { instance_type: variant, disk_gb: level }: PricedVm): number {
      const meter = 'vm.disk';
      const priceNano = prices.priceNano({ meter, variant, plan, at: clock.now() });
      return Number(burnNanoOf({ meter, level }, priceNano)) / NANO;
    },

    created: async (vm: CountedVm) => [...(await quotas.claimVm(vm)), ...usage.vmCreated(vm)],
    memoryTaken: (vm: { readonly account_id: number; readonly memory_mb: number }) => quotas.claimMemory(vm),
    reserved: (vm: UsedVm) => holds.place(vm),
    released: (vm: UsedVm) => holds.release(vm),
    started: (vm: UsedVm, at: number) => usage.vmStarted(vm, at),
    stopped: (vm: UsedVm, at: number) => usage.vmStopped(vm, at),
    deleted: (vm: CountedVm) => [...quotas.releaseVm(vm), ...usage.vmDeleted(vm)],
  };
}

export function storageCharges({ usage, quotas, credit }: ChargesDeps) {
  return {
    assertCredit: (accountId: number) => credit.assertCredit(accountId),

    bucketCreated: async (bucket: UsedBucket) => [
      ...(await quotas.claimBucket(bucket.account_id)),
      ...usage.bucketCreated(bucket),
    ],

    bucketDeleted: ({ id, account_id }: KnownBucket) => [
      ...quotas.releaseBucket(account_id),
      ...usage.bucketDeleted(id),
    ],

    async bytesKept({ id, account_id }: KnownBucket, bytes: number): Promise<readonly Statement[]> {
      if (bytes === 0) return [];
      const claim = bytes > 0 ? await quotas.claimStorage(account_id, bytes) : [];
      return [...claim, usage.bucketChanged(id, bytes)];
    },

    bytesSent: (bucketId: number, bytes: number) => usage.bucketSent(bucketId, bytes),
  };
}

export function databaseCharges({ usage, quotas, prices, clock, credit }: ChargesDeps) {
  return {
    assertCredit: (accountId: number) => credit.assertCredit(accountId),
    created: ({ account_id }: UsedDatabase) => quotas.claimDatabase(account_id),
    opened: (database: UsedDatabase, sizeBytes: number) => [usage.databaseOpened(database, sizeBytes)],
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
      const priceNano = prices.priceNano({ meter, variant: engine, plan, at: clock.now() });
      return Number(burnNanoOf({ meter, level }, priceNano)) / NANO;
    },
  };
}
