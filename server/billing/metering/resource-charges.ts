/** What billing does for machines, object storage and databases: the interfaces that these domains own. */
import type { Statement } from '../../metadata/metadata.ts';
import type { Prices } from '../catalog/prices.ts';
import type { Quotas } from '../catalog/quotas.ts';
import type { BillingAccountStore } from '../credit/billing-account-store.ts';
import { burnNanoOf, type Credit } from '../credit/credit.ts';
import type { Holds } from './holds.ts';
import type { Usage, UsedBucket, UsedDatabase, UsedVm } from './usage.ts';

export interface VmChargesDeps {
  readonly usage: Usage;
  readonly holds: Holds;
  readonly prices: Prices;
  readonly quotas: Quotas;
  readonly accounts: BillingAccountStore;
  readonly now: () => number;
  readonly credit: Credit;
}

interface WantedVm {
  readonly account_id: number;
  readonly plan: string;
  readonly instance_type: string;
}

type PricedVm = Pick<UsedVm, 'instance_type' | 'disk_gb'>;
type CountedVm = UsedVm & { readonly vcpus: number };

const NANO = 1e9;

export class VmCharges {
  readonly #deps: VmChargesDeps;

  constructor(deps: VmChargesDeps) {
    this.#deps = deps;
  }

  /** A refusal says that an hour of the type is needed. */
  async assertCredit({ account_id, plan, instance_type }: WantedVm): Promise<void> {
    await this.#deps.credit.assertCredit(
      account_id,
      this.#deps.holds.hourMicro(plan, instance_type) || undefined,
    );
  }

  /** '' without such an account. */
  async planOf(accountId: number): Promise<string> {
    return (await this.#deps.accounts.find(accountId))?.plan ?? '';
  }

  /** Credits an hour that it runs, now. */
  pricePerHour(plan: string, instanceType: string): number {
    const { prices, now } = this.#deps;
    const question = { variant: instanceType, plan, at: now() };
    return Number(prices.priceNano({ ...question, meter: 'vm.time' })) / NANO;
  }

  /** Credits an hour that its disk exists, now. */
  diskPricePerHour(plan: string, { instance_type: variant, disk_gb: level }: PricedVm): number {
    const { prices, now } = this.#deps;
    const meter = 'vm.disk';
    const priceNano = prices.priceNano({ meter, variant, plan, at: now() });
    return Number(burnNanoOf({ meter, level }, priceNano)) / NANO;
  }

  async created(vm: CountedVm): Promise<readonly Statement[]> {
    const { usage, quotas } = this.#deps;
    return [...(await quotas.claimVm(vm)), ...usage.vmCreated(vm)];
  }

  reserved(vm: UsedVm): Promise<readonly Statement[]> {
    return this.#deps.holds.place(vm);
  }

  released(vm: UsedVm): Promise<readonly Statement[]> {
    return this.#deps.holds.release(vm);
  }

  started(vm: UsedVm, at: number): readonly Statement[] {
    return this.#deps.usage.vmStarted(vm, at);
  }

  stopped(vm: UsedVm, at: number): readonly Statement[] {
    return this.#deps.usage.vmStopped(vm, at);
  }

  deleted(vm: CountedVm): readonly Statement[] {
    return [...this.#deps.quotas.releaseVm(vm), ...this.#deps.usage.vmDeleted(vm)];
  }
}

export interface StorageChargesDeps {
  readonly usage: Usage;
  readonly quotas: Quotas;
  readonly credit: Credit;
}

interface KnownBucket {
  readonly id: number;
  readonly account_id: number;
}

export class StorageCharges {
  readonly #deps: StorageChargesDeps;

  constructor(deps: StorageChargesDeps) {
    this.#deps = deps;
  }

  assertCredit(accountId: number): Promise<void> {
    return this.#deps.credit.assertCredit(accountId);
  }

  async bucketCreated(bucket: UsedBucket): Promise<readonly Statement[]> {
    const { usage, quotas } = this.#deps;
    return [...(await quotas.claimBucket(bucket.account_id)), ...usage.bucketCreated(bucket)];
  }

  bucketDeleted({ id, account_id }: KnownBucket): readonly Statement[] {
    const { usage, quotas } = this.#deps;
    return [...quotas.releaseBucket(account_id), ...usage.bucketDeleted(id)];
  }

  async bytesKept({ id, account_id }: KnownBucket, bytes: number): Promise<readonly Statement[]> {
    if (bytes === 0) return [];
    const { usage, quotas } = this.#deps;
    const claim = bytes > 0 ? await quotas.claimStorage(account_id, bytes) : [];
    return [...claim, usage.bucketChanged(id, bytes)];
  }

  bytesSent(bucketId: number, bytes: number): Statement {
    return this.#deps.usage.bucketSent(bucketId, bytes);
  }
}

export interface DatabaseChargesDeps {
  readonly usage: Usage;
  readonly quotas: Quotas;
  readonly prices: Prices;
  readonly now: () => number;
  readonly credit: Credit;
}

interface PricedDatabase {
  readonly engine: string;
  readonly size_bytes: number;
}

export class DatabaseCharges {
  readonly #deps: DatabaseChargesDeps;

  constructor(deps: DatabaseChargesDeps) {
    this.#deps = deps;
  }

  assertCredit(accountId: number): Promise<void> {
    return this.#deps.credit.assertCredit(accountId);
  }

  created({ account_id }: UsedDatabase): Promise<readonly Statement[]> {
    return this.#deps.quotas.claimDatabase(account_id);
  }

  opened(database: UsedDatabase, sizeBytes: number): readonly Statement[] {
    return [this.#deps.usage.databaseOpened(database, sizeBytes)];
  }

  resized({ database_id }: UsedDatabase, sizeBytes: number): readonly Statement[] {
    return [this.#deps.usage.databaseResized(database_id, sizeBytes)];
  }

  renamed({ database_id, name }: UsedDatabase): readonly Statement[] {
    return [this.#deps.usage.databaseRenamed(database_id, name)];
  }

  abandoned({ account_id }: UsedDatabase): readonly Statement[] {
    return this.#deps.quotas.releaseDatabase(account_id);
  }

  deleted({ account_id, database_id }: UsedDatabase): readonly Statement[] {
    const { quotas, usage } = this.#deps;
    return [...quotas.releaseDatabase(account_id), usage.databaseDeleted(database_id)];
  }

  pricePerHour(plan: string, { engine, size_bytes: level }: PricedDatabase): number {
    const { prices, now } = this.#deps;
    const meter = 'database.storage';
    const priceNano = prices.priceNano({ meter, variant: engine, plan, at: now() });
    return Number(burnNanoOf({ meter, level }, priceNano)) / NANO;
  }
}
