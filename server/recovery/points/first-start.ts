/** Prepares a restored cloud for its first start. */
import type { Metadata } from '../../metadata/metadata.ts';
import { type Journal, type Replay, replayJournal } from '../repository/journal.ts';
import { JournalStore } from '../repository/journal-store.ts';
import { RecoveryStore } from '../store.ts';
import { afterRestore } from './restored-store.ts';

export interface FirstStartDeps {
  /** The restored metadata, migrated to this program's schema. */
  readonly metadata: Metadata;
  /** Bytes of the dumps in the directory, by database. */
  readonly dumps: Parameters<typeof afterRestore>[1];
  /** ms since 1970. */
  readonly now: number;
}

export interface FirstStart {
  /** The journal of the point's cloud, or the reason why there is none. */
  readonly journal: Journal | string;
  readonly isAllRevoked: boolean;
  /** Time of the point, ms since 1970. */
  readonly cut: number;
  readonly repositoryId: string;
}

/**
 * Changes restored metadata as needed before the first start. Resolves with the changes since the
 * point, as lines for people.
 */
export async function prepareFirstStart(
  { metadata, dumps, now }: FirstStartDeps,
  { journal, isAllRevoked, cut, repositoryId }: FirstStart,
): Promise<readonly string[]> {
  const store = new JournalStore(metadata);
  const { statements, report } =
    typeof journal === 'string' ? unknownSince(journal) : await replayJournal(journal, store);
  const all = isAllRevoked ? store.revokeAll() : [];
  const keyTaken = new RecoveryStore(metadata).setKeyTaken(repositoryId, now);
  await metadata.commit([...statements, ...all, ...afterRestore({ now, cut }, dumps), keyTaken]);
  return [...report, ...(isAllRevoked ? ['All keys were revoked'] : [])];
}

function unknownSince(why: string): Replay {
  const report = [
    `Keys revoked and passwords changed after the recovery point was taken are valid again: ${why}`,
    'To be safe, restore with --revoke-all-keys; administrators can then issue new keys',
  ];
  return { statements: [], report };
}
