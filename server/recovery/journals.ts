/** Writes the journal of a running cloud beside its points, and finds it when that cloud is lost. */
import { type Clock, readTime } from '../platform/clock.ts';
import { type Journal, readJournal, takeJournal } from './journal.ts';
import type { JournalStore } from './journal-store.ts';
import type { Manifest } from './manifest.ts';
import { Damaged } from './piece-box.ts';
import { Repository } from './repository.ts';
import type { Target } from './target.ts';

export interface JournalsDeps {
  readonly store: JournalStore;
  readonly clock: Clock;
  /** undefined: none yet, because no point was created. */
  readonly find: () => Promise<Repository | undefined>;
  readonly cloud: () => Promise<string>;
}

export class Journals {
  readonly #deps: JournalsDeps;

  constructor(deps: JournalsDeps) {
    this.#deps = deps;
  }

  /** Replaces the journal. Not synced: a power failure of the target may lose a minute of it. */
  async write(): Promise<void> {
    const { store, clock, find, cloud } = this.#deps;
    const repository = await find();
    if (repository === undefined) return;
    const journal = await takeJournal(store, clock.now());
    await repository.putJournal(await cloud(), Buffer.from(JSON.stringify(journal)));
  }
}

/** The last journal of the point's cloud, or why there is none. */
export async function findJournal(
  target: Target,
  recoveryKey: Uint8Array,
  { cloud, cut_at: cutAt }: Manifest,
): Promise<Journal | string> {
  if (cloud === undefined) return 'the point was created by a version of Cloudlet without journals';
  const repository = new Repository(target, await Repository.unlock(target, recoveryKey));
  try {
    const bytes = await repository.getJournal(cloud);
    if (bytes === undefined) return 'no journal found';
    const journal = readJournal(bytes);
    const isOlder = readTime('written_at', journal.written_at) < readTime('cut_at', cutAt);
    return isOlder ? 'the journal is older than the point' : journal;
  } catch (error) {
    if (!(error instanceof Damaged)) throw error;
    return `the journal is damaged: ${error.message}`;
  }
}
