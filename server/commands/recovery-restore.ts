/** `cloudlet recovery restore`: a data directory of a point, with no running cloud. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { systemClock } from '../clock.ts';
import type { Config } from '../config.ts';
import { KeptDumpFiles } from '../drivers/kept-dump-files.ts';
import { SqliteMetadata } from '../drivers/metadata-sqlite/sqlite-metadata.ts';
import { DirectoryTarget } from '../drivers/recovery-directory/directory-target.ts';
import { RestoreDirectory } from '../drivers/recovery-directory/restore-directory.ts';
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
  const recoveryKey = readRecoveryKey(await keyText(values['key-file']));
  let folder: RestoreDirectory | undefined;
  const bar = new Progress();
  const restored = await restoreFiles({
    target: new DirectoryTarget(resolve(from)),
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
  await prepareFirstStart(folder.path);
  await folder.finish();
  tell(restored, directory);
  return restored.missing.length === 0 ? 0 : 1;
}

/** Brings the metadata to this program's schema, and to what must be so before the first start. */
async function prepareFirstStart(directory: string): Promise<void> {
  const metadata = await SqliteMetadata.open({
    directory,
    clock: systemClock,
    alarms: new Alarms(systemClock),
  });
  try {
    const dumps = await KeptDumpFiles.sizes(join(directory, 'databases', 'kept'));
    await metadata.commit(new RecoveryStore(metadata).afterRestore(systemClock.now(), dumps));
  } finally {
    await metadata.close();
  }
}

function tell({ manifest, missing }: Restored, directory: string): void {
  const { contents, cut_at, point_id } = manifest;
  const counts = Object.entries(contents).map(([what, count]) => `${count} ${what}`);
  console.log(`${point_id} of ${cut_at} UTC is restored in ${directory}: ${counts.join(', ')}`);
  for (const { component, reason } of manifest.gaps)
    console.log(`was not in the point: ${component} (${reason})`);
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
