/** `cloudlet recovery restore`: a data directory of a point, with no running cloud. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { systemClock } from '../clock.ts';
import type { Config } from '../config.ts';
import { KeptDumpFiles } from '../drivers/kept-dump-files.ts';
import { SqliteMetadata } from '../drivers/metadata-sqlite/sqlite-metadata.ts';
import { DirectoryTarget } from '../drivers/recovery-directory/directory-target.ts';
import { RestoreDirectory } from '../drivers/recovery-directory/restore-directory.ts';
import { type Journal, type Replay, replayJournal } from '../recovery/journal.ts';
import { JournalStore } from '../recovery/journal-store.ts';
import { findJournal } from '../recovery/journals.ts';
import { readRecoveryKey } from '../recovery/recovery-key.ts';
import { type Restored, restoreFiles } from '../recovery/restore.ts';
import { RecoveryStore } from '../recovery/store.ts';
import { Alarms } from '../system/alarms.ts';
import { ask } from './ask.ts';
import { UsageError, type Words } from './command.ts';
import { Progress } from './progress.ts';

export async function restore(_config: Config, { values }: Words): Promise<number> {
  const { from, to, point = 'latest', partial } = values;
  if (from === undefined || to === undefined)
    throw new UsageError('restore needs --from and --to; see --help');
  if (partial !== undefined && partial !== 'yes')
    throw new UsageError('--partial takes yes, or leave it out');
  const directory = resolve(to);
  await RestoreDirectory.demandEmpty(directory);
  const target = new DirectoryTarget(resolve(from));
  const recoveryKey = readRecoveryKey(await keyText(values['key-file']));
  let folder: RestoreDirectory | undefined;
  const bar = new Progress();
  const restored = await restoreFiles({
    target,
    recoveryKey,
    pointId: point,
    folder: async (pointId) => {
      folder = await RestoreDirectory.open(directory, pointId);
      return folder;
    },
    isPartial: partial === 'yes',
    onProgress: ({ bytes, totalBytes }) => bar.show((bytes / Math.max(1, totalBytes)) * 100),
  });
  bar.end();
  if (folder === undefined) throw new Error('nothing was restored');
  const journal = await findJournal(target, recoveryKey, restored.manifest);
  const told = await prepareFirstStart(folder.path, journal, values['revoke-all-keys'] !== undefined);
  await folder.finish();
  tell(restored, directory, told);
  return restored.missing.length === 0 ? 0 : 1;
}

/** Brings the metadata to this program's schema, and to what must be so before the first start. */
async function prepareFirstStart(
  directory: string,
  journal: Journal | string,
  isAllRevoked: boolean,
): Promise<readonly string[]> {
  const metadata = await SqliteMetadata.open({
    directory,
    clock: systemClock,
    alarms: new Alarms(systemClock),
  });
  try {
    const dumps = await KeptDumpFiles.sizes(join(directory, 'databases', 'kept'));
    const store = new JournalStore(metadata);
    const { statements, told } =
      typeof journal === 'string' ? unknownSince(journal) : await replayJournal(journal, store);
    const all = isAllRevoked ? store.revokeAll() : [];
    const after = new RecoveryStore(metadata).afterRestore(systemClock.now(), dumps);
    await metadata.commit([...statements, ...all, ...after]);
    return [...told, ...(isAllRevoked ? ['All keys are revoked'] : [])];
  } finally {
    await metadata.close();
  }
}

function unknownSince(why: string): Replay {
  const told = [
    `Keys that were revoked after the point work again, and so do old passwords: ${why}`,
    'To be sure, restore with --revoke-all-keys yes; administrators then give new ones',
  ];
  return { statements: [], told };
}

function tell({ manifest, missing }: Restored, directory: string, told: readonly string[]): void {
  const { contents, cut_at, point_id } = manifest;
  const counts = Object.entries(contents).map(([what, count]) => `${count} ${what}`);
  console.log(`${point_id} of ${cut_at} UTC is restored in ${directory}: ${counts.join(', ')}`);
  for (const { component, reason } of manifest.gaps)
    console.log(`was not in the point: ${component} (${reason})`);
  for (const line of told) console.log(line);
  for (const path of missing) console.log(`missing or damaged: ${path}`);
  console.log(`Start it: bin/cloudlet start --data-dir ${directory}`);
}

/** Of the file, or of who sits there. */
async function keyText(file: string | undefined): Promise<string> {
  if (file !== undefined) return readFileSync(file, 'utf8');
  const typed = await ask('The recovery key: ');
  if (typed === '') throw new Error('a recovery key is needed: type it, or name a file with --key-file');
  return typed;
}
