/** Egress of databases through Cloudlet, in bytes: counted in memory, written at intervals. */
import { type Changes, WriteBehind } from '../../metadata/change.ts';
import type { Statement } from '../../metadata/metadata.ts';

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

  /** Counts the bytes of each piece and passes it on. */
  async *counted(databaseId: string, pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces) {
      this.count(databaseId, piece.length);
      yield piece;
    }
  }

  /** Writes the pending counts. */
  flush(): Promise<void> {
    return this.#sent.flush();
  }
}

/**
 * The billing port of databases: its statements join the commit of the change that they count, so that both
 * are stored or neither.
 */
export interface BilledDatabase {
  readonly database_id: string;
  readonly account_id: number;
  readonly name: string;
  readonly engine: string;
}

export interface DatabaseBilling {
  /** Throws `insufficient_credits` when the account has no credits left. */
  assertCredit(accountId: number): Promise<void>;
  /**
   * Statements for a new or undeleted database. Throws `quota_exceeded`. If the commit is refused because a
   * concurrent change used up the quota, call this again.
   */
  created(database: BilledDatabase): Promise<readonly Statement[]>;
  /** Storage is counted from now on. */
  opened(database: BilledDatabase, sizeBytes: number): readonly Statement[];
  /** Sets the counted storage from now on. Does nothing for a deleted database. */
  resized(database: BilledDatabase, sizeBytes: number): readonly Statement[];
  /** For an open database that already has its new name. */
  renamed(database: BilledDatabase): readonly Statement[];
  /** Counts bytes sent to the user. Does nothing for a purged database. */
  sent(databaseId: string, bytes: number): Statement;
  /** For a database that was created() and never opened(). */
  abandoned(database: BilledDatabase): readonly Statement[];
  deleted(database: BilledDatabase): readonly Statement[];
  /** For a deleted database: the last dump is charged like the same number of bytes. */
  dumpKept(database: BilledDatabase, bytes: number): readonly Statement[];
  dumpRemoved(database: BilledDatabase): readonly Statement[];
  /** Current hourly price of its storage, credits. */
  pricePerHour(plan: string, database: { readonly engine: string; readonly size_bytes: number }): number;
}
