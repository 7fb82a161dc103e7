/** What every commit goes through before it reaches the engine, and after. */
import { isAppError } from '../platform/errors.ts';
import type { Metadata, Told } from './metadata.ts';

/** The same to read, with another way to commit. */
function withCommit(metadata: Metadata, commit: Metadata['commit']): Metadata {
  return {
    get: metadata.get.bind(metadata),
    all: metadata.all.bind(metadata),
    close: metadata.close.bind(metadata),
    commit,
  };
}

/**
 * Commits that find the disk full get a second try on the reserved blocks: deletes and the ledger must
 * work at 0 free bytes. New bytes are refused long before, by DiskRoom.assertRoom.
 */
export function withReserve(metadata: Metadata, releaseReserve: () => Promise<boolean>): Metadata {
  return withCommit(metadata, (statements) =>
    metadata.commit(statements).catch(async (error: unknown) => {
      if (isAppError(error, 'out_of_space') && (await releaseReserve())) return metadata.commit(statements);
      throw error;
    }),
  );
}

/** Tells who watches what a commit changed, once it is stored. `tell` must not throw. */
export function withWatchers(metadata: Metadata, tell: (told: Told) => void): Metadata {
  return withCommit(metadata, async (statements) => {
    const results = await metadata.commit(statements);
    for (const { tells } of statements) if (tells !== undefined) tell(tells);
    return results;
  });
}
