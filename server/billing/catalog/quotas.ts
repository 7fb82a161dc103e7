/**
 * Quotas of an account. A claim beyond a limit is refused by its own commit, so that no number of parallel
 * requests exceeds the limit; existing resources stay when a limit is lowered.
 */
import { toCredits } from '../../accounts/credits.ts';
import { type Ages, Remembered } from '../../metadata/ages.ts';
import type { Bus } from '../../metadata/bus.ts';
import { turnAt } from '../../metadata/change.ts';
import type { Statement } from '../../metadata/metadata.ts';
import { AppError } from '../../platform/errors.ts';
import type { DiskShares } from '../../resources/disk-shares.ts';
import type { CatalogStore, Counts, QuotaRow } from './catalog-store.ts';

export const QUOTAS = [
  'vms',
  'vcpus',
  'memory_mb',
  'disk_gb',
  'storage_bytes',
  'buckets',
  'databases',
] as const;
export type Quota = (typeof QUOTAS)[number];

/** null: unlimited. */
export type Limits = Readonly<Partial<Record<Quota, number | null>>>;

export interface QuotaUse {
  readonly limit: number | null;
  readonly used: number;
}

export interface Terms {
  readonly plan: string;
  readonly own_quotas: Limits;
  readonly quotas: Readonly<Record<Quota, QuotaUse>>;
  /** Spend cap set by an administrator, credits per month; null: none. */
  readonly spend_cap: number | null;
}

interface WantedTerms {
  readonly spendCap?: number | null | undefined;
  readonly plan?: { readonly name: string; readonly quotas: string } | undefined;
  readonly own?: Limits | undefined;
}

interface CountedVm {
  readonly account_id: number;
  readonly vcpus: number;
  /** Disk in GB, including its snapshots. */
  readonly disk_gb: number;
}

interface StartedVm {
  readonly account_id: number;
  readonly memory_mb: number;
}

type Claim = Readonly<Partial<Record<Quota, number>>>;

const NONE = { vms: 0, vcpus: 0, buckets: 0, databases: 0 };

export interface QuotasDeps {
  readonly store: CatalogStore;
  readonly ages: Ages;
  readonly bus: Pick<Bus, 'onForget'>;
  /** undefined: objects are on another disk, or accounts are not limited to a share. */
  readonly diskShares?: Pick<DiskShares, 'assertRoom' | 'stored'> | undefined;
}

export class Quotas {
  readonly #store: CatalogStore;
  readonly #diskShares: QuotasDeps['diskShares'];
  /** Whether any plan or account has a limit on stored bytes. */
  readonly #limitsStorage: Remembered<'', boolean>;

  constructor({ store, ages, bus, diskShares }: QuotasDeps) {
    this.#store = store;
    this.#diskShares = diskShares;
    this.#limitsStorage = new Remembered({ ages, read: () => store.limitsStorage() });
    bus.onForget('quota', () => this.#limitsStorage.forget());
  }

  /**
   * The statements that claim one more machine; they must follow the statement that stores its row. Like
   * those of the claims below, they refuse the commit if another request has used up the quota meanwhile;
   * then claim again. Throws `quota_exceeded` if the quota is used up already.
   */
  async claimVm({ account_id, vcpus, disk_gb }: CountedVm): Promise<readonly Statement[]> {
    const counts = await this.#claim(account_id, { vms: 1, vcpus });
    return [...counts, ...(await this.claimDisk(account_id, disk_gb))];
  }

  releaseVm({ account_id, vcpus }: Omit<CountedVm, 'disk_gb'>): readonly Statement[] {
    return [this.#store.release(account_id, { ...NONE, vms: 1, vcpus })];
  }

  /**
   * The statements that claim the virtual CPUs and the disk that a machine gains, or release those that it
   * loses. Must follow the statement that stores them.
   */
  async resizeVm(before: CountedVm, after: CountedVm): Promise<readonly Statement[]> {
    const { account_id } = after;
    const vcpus = after.vcpus - before.vcpus;
    const disk = await this.claimDisk(account_id, after.disk_gb - before.disk_gb);
    if (vcpus > 0) return [...(await this.#claim(account_id, { vcpus })), ...disk];
    return vcpus === 0
      ? disk
      : [this.#store.release(account_id, { ...NONE, vms: 0, vcpus: -vcpus }), ...disk];
  }

  /** Must follow the statement that stores the larger disk or the snapshot. None for less disk. */
  async claimDisk(accountId: number, moreGb: number): Promise<readonly Statement[]> {
    if (moreGb <= 0) return [];
    const { disk_gb: limit = null } = await this.#assertEnough(accountId, { disk_gb: moreGb });
    return limit === null ? [] : [turnAt('accounts', accountId), this.#store.expectDisk(accountId, limit)];
  }

  /** Must follow the statement that starts one more machine. */
  async claimMemory({ account_id, memory_mb }: StartedVm): Promise<readonly Statement[]> {
    const { memory_mb: limit = null } = await this.#assertEnough(account_id, { memory_mb });
    return limit === null ? [] : [this.#store.expectMemory(account_id, limit)];
  }

  claimBucket(accountId: number): Promise<readonly Statement[]> {
    return this.#claim(accountId, { buckets: 1 });
  }

  releaseBucket(accountId: number): readonly Statement[] {
    return [this.#store.release(accountId, { ...NONE, buckets: 1 })];
  }

  claimDatabase(accountId: number): Promise<readonly Statement[]> {
    return this.#claim(accountId, { databases: 1 });
  }

  releaseDatabase(accountId: number): readonly Statement[] {
    return [this.#store.release(accountId, { ...NONE, databases: 1 })];
  }

  /**
   * Throws `quota_exceeded` or `out_of_space` if the account's uploads in progress must not store that many
   * bytes: they are counted nowhere else until they end. An upload may replace stored bytes, so uploads may
   * use the whole quota.
   */
  async assertUploads(accountId: number, bytes: number): Promise<void> {
    await this.#diskShares?.assertRoom(accountId, bytes);
    if (!(await this.#limitsStorage.get(''))) return;
    const row = await this.#store.findQuotas(accountId);
    if (row === undefined) return;
    const limit = limitsOf(row).storage_bytes ?? null;
    if (limit !== null && bytes > limit) {
      const used = Number(row.storage_bytes);
      throw exceeded('storage_bytes', { limit, used, requested: bytes });
    }
  }

  /** Must come after the statement that counts the bytes in accounts.storage_bytes. */
  async claimStorage(accountId: number, bytes: number): Promise<readonly Statement[]> {
    await this.#diskShares?.assertRoom(accountId, bytes);
    // Called by every upload: nothing is read unless a limit exists.
    if (!(await this.#limitsStorage.get(''))) return [];
    const { storage_bytes: limit = null } = await this.#assertEnough(accountId, { storage_bytes: bytes });
    return limit === null ? [] : [this.#store.expectStorage(accountId, limit)];
  }

  /** Must be called after the commit with the claimed bytes. */
  bytesStored(accountId: number, bytes: number): void {
    // Removed bytes are free after the next count.
    if (bytes > 0) this.#diskShares?.stored(accountId, bytes);
  }

  async #claim(accountId: number, claim: Partial<Counts>): Promise<readonly Statement[]> {
    const limits = await this.#assertEnough(accountId, claim);
    return [this.#store.claim(accountId, { ...NONE, ...claim }, limits)];
  }

  /** The effective limits. Throws `quota_exceeded`, which names the first quota that is exceeded. */
  async #assertEnough(accountId: number, claim: Claim): Promise<Limits> {
    const row = await this.#store.findQuotas(accountId);
    if (row === undefined) return {};
    const limits = limitsOf(row);
    for (const quota of QUOTAS) {
      const requested = claim[quota];
      const limit = limits[quota] ?? null;
      if (requested === undefined || limit === null) continue;
      const used = Number(row[quota]);
      if (used + requested > limit) throw exceeded(quota, { limit, used, requested });
    }
    return limits;
  }

  /**
   * Plan, own limits and all quotas of an account, current or as they would be with another plan or other own
   * limits; undefined if the account does not exist.
   */
  async termsOf(accountId: number, wanted: WantedTerms = {}): Promise<Terms | undefined> {
    const found = await this.#store.findQuotas(accountId);
    if (found === undefined) return undefined;
    const { plan, own: own_quotas = JSON.parse(found.quotas) as Limits } = wanted;
    const stored = found.admin_cap_micro === null ? null : toCredits(found.admin_cap_micro);
    const { spendCap: spend_cap = stored } = wanted;
    const row = {
      ...found,
      plan: plan?.name ?? found.plan,
      plan_quotas: plan?.quotas ?? found.plan_quotas,
      quotas: JSON.stringify(own_quotas),
    };
    const limits = limitsOf(row);
    const use = (quota: Quota) => ({ limit: limits[quota] ?? null, used: Number(row[quota]) });
    const quotas = Object.fromEntries(QUOTAS.map((quota) => [quota, use(quota)])) as Record<Quota, QuotaUse>;
    return { plan: row.plan, own_quotas, quotas, spend_cap };
  }

  /** Replaces the account's own limits. Changes no row if the account does not exist. */
  setOwn(accountId: number, limits: Limits): Statement {
    return this.#store.setQuotas(accountId, JSON.stringify(limits));
  }
}

function limitsOf(row: QuotaRow): Limits {
  return { ...(JSON.parse(row.plan_quotas ?? '{}') as Limits), ...(JSON.parse(row.quotas) as Limits) };
}

const LESS: Readonly<Partial<Record<Quota, string>>> = {
  memory_mb: 'Stop another machine, use a smaller instance type',
  disk_gb: 'Delete snapshots or machines, use an instance type with a smaller disk',
};
const ASK = 'administrator for a higher quota';

const WORDS: Readonly<Record<Quota, string>> = {
  vms: 'virtual machines',
  vcpus: 'virtual CPUs',
  memory_mb: 'MiB of memory of running machines',
  disk_gb: 'GB of disks and snapshots of machines',
  storage_bytes: 'stored bytes (all versions)',
  buckets: 'buckets',
  databases: 'databases',
};

function exceeded(quota: Quota, figures: { limit: number; used: number; requested: number }): AppError {
  const { limit, used, requested } = figures;
  return new AppError(
    'quota_exceeded',
    `Your quota of ${limit} ${WORDS[quota]} is not enough for ${requested} more: ${used} are in use`,
    {
      hint: `${LESS[quota] ?? 'Delete unused resources'}, or ask your ${ASK}`,
      extra: { quota, limit, used, requested },
    },
  );
}
