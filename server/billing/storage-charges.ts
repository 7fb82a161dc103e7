/** What buckets cost: the statements that storage puts into its commits. */
import type { Statement } from '../metadata/metadata.ts';
import type { Quotas } from './quotas.ts';
import type { Usage, UsedBucket } from './usage.ts';

export interface StorageChargesDeps {
  readonly usage: Usage;
  readonly quotas: Quotas;
  /** Throws `insufficient_credits` when the account may not begin anything new. */
  readonly assertCredit: (accountId: number) => Promise<void>;
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
    return this.#deps.assertCredit(accountId);
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
