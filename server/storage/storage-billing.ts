/**
 * The billing port of object storage: its statements join the commit of the change that they count,
 * so that both are stored or neither.
 */
import type { Awaitable, RowIdOf, Statement } from '../metadata/metadata.ts';

export interface BilledBucket {
  /** Row id; RowIdOf if the commit creates it. */
  readonly id: number | RowIdOf;
  readonly account_id: number;
  readonly name: string;
}

export interface StorageBilling {
  /** Throws `insufficient_credits` when the account has no credits left. */
  assertCredit(accountId: number): Awaitable<void>;
  /**
   * Throws `quota_exceeded` or `out_of_space` if the account's uploads in progress must not store that many
   * bytes.
   */
  assertUploads(accountId: number, bytes: number): Awaitable<void>;
  /**
   * The statements that a new bucket adds to its commit. Throws `quota_exceeded`. If the commit is
   * refused because another request used up the quota in the meantime, call it again.
   */
  bucketCreated(bucket: BilledBucket): Awaitable<readonly Statement[]>;
  bucketDeleted(bucket: { readonly id: number; readonly account_id: number }): readonly Statement[];
  /**
   * Adds `bytes` (negative: removes) to the bucket's stored bytes. Throws and is refused like
   * bucketCreated(), except with a removal.
   */
  bytesKept(
    bucket: { readonly id: number; readonly account_id: number },
    bytes: number,
    of?: { readonly isRemoval: boolean },
  ): Awaitable<readonly Statement[]>;
  /** Must be called with the bytes that bytesKept() added, after the commit. */
  bytesStored(accountId: number, bytes: number): void;
  /** Adds `bytes` sent from the bucket's objects. */
  bytesSent(bucketId: number, bytes: number): Statement;
}
