/** Reads every database and every last dump now and then, so that damage is told while a copy exists. */
import { basename } from 'node:path';
import type { Reads } from '../metadata/metadata.ts';
import { isAppError } from '../platform/errors.ts';
import type { OpenedFile, Snapshot, Source } from '../recovery/sources.ts';
import type { DataFaults } from './data-faults.ts';

export interface DataCheckDeps {
  /** As recovery points read them. */
  readonly source: Source;
  readonly reads: Reads;
  readonly faults: DataFaults;
}

/** How PostgreSQL and MariaDB say that a page is not what they wrote; other failures are no damage. */
const DAMAGE = /invalid page in block|could not read block|is corrupt|checksum/i;

export class DataCheck {
  readonly #deps: DataCheckDeps;

  constructor(deps: DataCheckDeps) {
    this.#deps = deps;
  }

  /** By the database's id, what is wrong with it. */
  damage(): ReadonlyMap<string, string> {
    return this.#deps.faults.all();
  }

  /** Reads all, one after the other; resolves to how many were read. Throws the reason of `signal`. */
  async run(signal: AbortSignal): Promise<number> {
    const { source, reads, faults } = this.#deps;
    const unread = new Map<string, string>();
    let count = 0;
    for await (const file of source.files({ reads } as Snapshot, signal)) {
      signal.throwIfAborted();
      const problem = await damageOf(file as unknown as OpenedFile);
      if (problem !== null) unread.set(basename(file.path), problem);
      count++;
    }
    faults.noteUnread(unread);
    return count;
  }
}

/** null: all of it could be read, or nobody can tell now. */
async function damageOf(file: OpenedFile): Promise<string | null> {
  try {
    for await (const _ of (await file.open()) ?? []);
    return null;
  } catch (error) {
    const { message } = error as Error;
    return isAppError(error, 'data_damaged') || DAMAGE.test(message) ? message : null;
  }
}
