/** Bytes that databases send to their users through Cloudlet: counted in memory, written now and then. */
import { type Changes, WriteBehind } from '../metadata/change.ts';
import type { Statement } from '../metadata/metadata.ts';

export interface EgressDeps {
  readonly changes: Changes;
  readonly billing: Pick<DatabaseBilling, 'sent'>;
}

export class Egress {
  readonly #sent: WriteBehind<string, number>;

  constructor({ changes, billing }: EgressDeps) {
    this.#sent = new WriteBehind({
      changes,
      statementOf: (databaseId, bytes) => billing.sent(databaseId, bytes),
      join: (earlier, later) => earlier + later,
    });
  }

  count(databaseId: string, bytes: number): void {
    this.#sent.note(databaseId, bytes);
  }

  /** The same pieces, each counted as it passes. */
  async *counted(databaseId: string, pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces) {
      this.count(databaseId, piece.length);
      yield piece;
    }
  }

  /** Writes what has gathered. */
  flush(): Promise<void> {
    return this.#sent.flush();
  }
}

/**
 * What databases need of billing: its statements go into the commit of the change that they count, so that
 * neither is there without the other.
 */
export interface BilledDatabase {
  readonly database_id: string;
  readonly account_id: number;
  readonly name: string;
  readonly engine: string;
}

export interface DatabaseBilling {
  /** Throws `insufficient_credits` when the account has none left. */
  assertCredit(accountId: number): Promise<void>;
  /**
   * For a new database, or one that comes back. Throws `quota_exceeded`; the commit is refused when somebody
   * else took the last of a quota meanwhile: ask again then.
   */
  created(database: BilledDatabase): Promise<readonly Statement[]>;
  /** Its bytes are counted from now on. */
  opened(database: BilledDatabase, sizeBytes: number): readonly Statement[];
  /** It takes so many bytes from now on. Nothing for one that was deleted. */
  resized(database: BilledDatabase, sizeBytes: number): readonly Statement[];
  /** For one that was opened and has its new name. */
  renamed(database: BilledDatabase): readonly Statement[];
  /** So many bytes of it were sent to its user. Nothing for one that is gone for good. */
  sent(databaseId: string, bytes: number): Statement;
  /** For one that was created() and never opened(). */
  abandoned(database: BilledDatabase): readonly Statement[];
  deleted(database: BilledDatabase): readonly Statement[];
  /** Credits an hour, for the bytes that it takes, now. */
  pricePerHour(plan: string, database: { readonly engine: string; readonly size_bytes: number }): number;
}
