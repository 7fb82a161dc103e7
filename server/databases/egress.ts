/** Bytes that databases send to their users through Cloudlet: counted in memory, written now and then. */
import type { Changes } from '../metadata/change.ts';
import { WriteBehind } from '../metadata/write-behind.ts';
import type { DatabaseBilling } from './database-billing.ts';

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
