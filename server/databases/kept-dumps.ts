/** What the databases domain needs of a place for the last dumps of deleted databases. */
import type { Readable } from 'node:stream';

export interface KeptDumps {
  /**
   * Resolves with its bytes when the whole dump is on disk, in place of an earlier one of that database.
   * Throws `out_of_space`, and what `dump` fails with; nothing of it is left then.
   */
  keep(databaseId: string, dump: Readable): Promise<number>;
  /** Has `take` read it, and closes it afterwards. Throws when there is none, and what `take` throws. */
  read(databaseId: string, take: (dump: Readable) => Promise<void>): Promise<void>;
  /** Fine when there is none. */
  remove(databaseId: string): Promise<void>;
  /** Ids of the databases of which there is one. */
  list(): Promise<readonly string[]>;
}
