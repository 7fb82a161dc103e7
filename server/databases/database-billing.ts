/**
 * What databases need of billing: its statements go into the commit of the change that they count, so that
 * neither is there without the other.
 */
import type { Statement } from '../metadata/metadata.ts';

export interface BilledDatabase {
  readonly database_id: string;
  readonly account_id: number;
  readonly name: string;
  readonly engine: string;
}

export interface DatabaseBilling {
  /** Throws `insufficient_credits` when the account has none left. */
  require(accountId: number): Promise<void>;
  /**
   * Of a new database, or one that comes back. Throws `quota_exceeded`; the commit is refused when somebody
   * else took the last of a quota meanwhile: ask again then.
   */
  created(database: BilledDatabase): Promise<readonly Statement[]>;
  /** Its bytes are counted from now on. */
  opened(database: BilledDatabase, sizeBytes: number): readonly Statement[];
  /** `bytes` more, or fewer, are kept. */
  resized(database: BilledDatabase, bytes: number): readonly Statement[];
  /** Of one that was created() and never opened(). */
  abandoned(database: BilledDatabase): readonly Statement[];
  deleted(database: BilledDatabase): readonly Statement[];
  /** Credits an hour, for so many bytes, now. */
  pricePerHour(plan: string, sizeBytes: number): number;
}
