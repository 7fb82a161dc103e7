/**
 * What storage needs of billing: its statements go into the commit of the change that they count, so that
 * neither is there without the other.
 */
import type { Awaitable, RowIdOf, Statement } from '../metadata/metadata.ts';

export interface BilledBucket {
  /** Row id; RowIdOf when the commit makes it. */
  readonly id: number | RowIdOf;
  readonly account_id: number;
  readonly name: string;
}

export interface StorageBilling {
  /** Throws `insufficient_credits` when the account has none left. */
  assertCredit(accountId: number): Awaitable<void>;
  /**
   * What a new bucket adds to a commit. Throws `quota_exceeded`. The commit is refused when somebody else
   * took the last of a quota meanwhile: ask again then.
   */
  bucketCreated(bucket: BilledBucket): Awaitable<readonly Statement[]>;
  bucketDeleted(bucket: { readonly id: number; readonly account_id: number }): readonly Statement[];
  /** `bytes` more (or fewer) are kept in the bucket. Throws and is refused as bucketCreated(). */
  bytesKept(
    bucket: { readonly id: number; readonly account_id: number },
    bytes: number,
  ): Awaitable<readonly Statement[]>;
  /** `bytes` of the bucket's objects were sent to someone. */
  bytesSent(bucketId: number, bytes: number): Statement;
}
