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
  /** undefined: there is none yet, as no point was made. */
  readonly find: () => Promise<Repository | undefined>;
  readonly cloud: () => Promise<string>;
}

export class Journals {
  readonly #deps: JournalsDeps;

  constructor(deps: JournalsDeps) {
    this.#deps = deps;
  }

  /** Replaces the journal. Not synced: a minute's worth may be lost with the power of the place. */
  async write(): Promise<void> {
    const { store, clock, find, cloud } = this.#deps;
    const repository = await find();
    if (repository === undefined) return;
    const journal = await takeJournal(store, clock.now());
    await repository.putJournal(await cloud(), Buffer.from(JSON.stringify(journal)));
  }
}

/** What the cloud of that point wrote down last, or why nothing is known. */
export async function findJournal(
  target: Target,
  recoveryKey: Uint8Array,
  { cloud, cut_at: cutAt }: Manifest,
): Promise<Journal | string> {
  if (cloud === undefined) return 'the point is of a Cloudlet that wrote no journal';
  const repository = new Repository(target, await Repository.unlock(target, recoveryKey));
  try {
    const bytes = await repository.getJournal(cloud);
    if (bytes === undefined) return 'there is no journal';
    const journal = readJournal(bytes);
    const isOlder = readTime('written_at', journal.written_at) < readTime('cut_at', cutAt);
    return isOlder ? 'the journal is older than the point' : journal;
  } catch (error) {
    if (!(error instanceof Damaged)) throw error;
    return `the journal is damaged: ${error.message}`;
  }
}
