/** `cloudlet recovery restore`: a data directory of a point, with no running cloud. */
import { join, resolve } from 'node:path';
import type { Config } from '../config/config.ts';
import { KeptDumpFiles } from '../drivers/kept-dump-files.ts';
import { SqliteMetadata } from '../drivers/metadata-sqlite/sqlite-metadata.ts';
import { DirectoryTarget } from '../drivers/recovery-directory/directory-target.ts';
import { RestoreDirectory } from '../drivers/recovery-directory/restore-directory.ts';
import { Alarms } from '../platform/alarms.ts';
import { readTime, systemClock } from '../platform/clock.ts';
import { plural } from '../platform/plural.ts';
import { findJournal, type Journal, type Replay, replayJournal } from '../recovery/journal.ts';
import { JournalStore } from '../recovery/journal-store.ts';
import {
  type Restored,
  type RestoreOptions,
  type RestoreProgress,
  restoreFiles,
} from '../recovery/restore.ts';
import { afterRestore } from '../recovery/restored-store.ts';
import { RecoveryStore } from '../recovery/store.ts';
import { UsageError, type Words } from './command.ts';
import { givenRecoveryKey, Progress } from './terminal.ts';

export async function restore(_config: Config, { values }: Words): Promise<number> {
  const { from, to, point = 'latest', partial } = values;
  if (from === undefined || to === undefined)
    throw new UsageError('restore needs --from and --to; see cloudlet recovery --help');
  const directory = resolve(to);
  const folder = await RestoreDirectory.open(directory);
  if (await folder.isWhole()) {
    await folder.finish();
    console.log(`The interrupted restore in ${directory} is now complete. ${startIt(directory)}`);
    return 0;
  }
  const target = new DirectoryTarget(resolve(from));
  const recoveryKey = await givenRecoveryKey(values['key-file']);
  const restored = await write({
    target,
    recoveryKey,
    pointId: point,
    folder,
    isPartial: partial !== undefined,
  });
  const journal = await findJournal(target, recoveryKey, restored.manifest);
  const report = await prepareFirstStart(folder.path, {
    journal,
    isAllRevoked: values['revoke-all-keys'] !== undefined,
    cut: readTime('cut_at', restored.manifest.cut_at),
    repositoryId: restored.repositoryId,
  });
  await folder.finish();
  printResult(restored, directory, report);
  return restored.missing.length === 0 ? 0 : 1;
}

async function write(options: Omit<RestoreOptions, 'onProgress'>): Promise<Restored> {
  const bar = new Progress();
  let phase = '';
  const onProgress = (done: RestoreProgress) => {
    if (phase !== done.phase) {
      bar.end();
      phase = done.phase;
      console.log(PHASES[done.phase]);
    }
    bar.show((done.bytes / Math.max(1, done.totalBytes)) * 100);
  };
  try {
    return await restoreFiles({ ...options, onProgress });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    throw new Error('The disk is full. Free some disk space and run this command again to resume', {
      cause: error,
    });
  } finally {
    bar.end();
  }
}

const PHASES = { reading: 'Reading all pieces', writing: 'Writing files' };

interface FirstStart {
  readonly journal: Journal | string;
  readonly isAllRevoked: boolean;
  readonly cut: number;
  readonly repositoryId: string;
}

/** Brings the metadata to this program's schema, and to what must be so before the first start. */
async function prepareFirstStart(
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

function printResult({ manifest, missing }: Restored, directory: string, report: readonly string[]): void {
  const { contents, cut_at, point_id } = manifest;
  const counts = Object.entries(contents).map(([what, count]) => plural(count, what.replace(/s$/, '')));
  console.log(`Restored ${point_id}, taken at ${cut_at} UTC, to ${directory}: ${counts.join(', ')}`);
  for (const { component, reason } of manifest.gaps)
    console.log(`not included in the recovery point: ${component} (${reason})`);
  for (const line of report) console.log(line);
  for (const path of missing) console.log(`missing or damaged: ${path}`);
  console.log(startIt(directory));
}

function startIt(directory: string): string {
  return `To start it, run bin/cloudlet start --data-dir ${directory}`;
}
