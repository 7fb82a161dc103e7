/** Prepares the files of a restored cloud for their first start. */
import { join } from 'node:path';
import { KeptDumpFiles } from '../drivers/kept-dump-files.ts';
import { SqliteMetadata } from '../drivers/metadata-sqlite/sqlite-metadata.ts';
import { Alarms } from '../platform/alarms.ts';
import { systemClock } from '../platform/clock.ts';
import { afterRestore } from '../recovery/points/restored-store.ts';
import { type Journal, type Replay, replayJournal } from '../recovery/repository/journal.ts';
import { JournalStore } from '../recovery/repository/journal-store.ts';
import { RecoveryStore } from '../recovery/store.ts';

export interface FirstStart {
  /** The journal of the point's cloud, or why there is none. */
  readonly journal: Journal | string;
  readonly isAllRevoked: boolean;
  /** Time of the point, ms since 1970. */
  readonly cut: number;
  readonly repositoryId: string;
}

/**
 * Brings the metadata to this program's schema, and to what must be so before the first start. Resolves with
 * what changed since the point, as lines for people.
 */
export async function prepareFirstStart(
  directory: string,
  { journal, isAllRevoked, cut, repositoryId }: FirstStart,
): Promise<readonly string[]> {
  const metadata = await SqliteMetadata.open({
    directory,
    clock: systemClock,
    alarms: new Alarms(systemClock),
  });
  try {
    const dumps = await KeptDumpFiles.sizes(join(directory, 'databases', 'kept'));
    const store = new JournalStore(metadata);
    const { statements, report } =
      typeof journal === 'string' ? unknownSince(journal) : await replayJournal(journal, store);
    const all = isAllRevoked ? store.revokeAll() : [];
    const now = systemClock.now();
    const keyTaken = new RecoveryStore(metadata).setKeyTaken(repositoryId, now);
    await metadata.commit([...statements, ...all, ...afterRestore({ now, cut }, dumps), keyTaken]);
    return [...report, ...(isAllRevoked ? ['All keys were revoked'] : [])];
  } finally {
    await metadata.close();
  }
}

function unknownSince(why: string): Replay {
  const report = [
    `Keys revoked and passwords changed after the recovery point was taken are valid again: ${why}`,
    'To be safe, restore with --revoke-all-keys; administrators can then issue new keys',
  ];
  return { statements: [], report };
}
