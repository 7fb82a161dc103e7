/** `cloudlet recovery restore`: restores a point to a data directory, with no running cloud. */
import { resolve } from 'node:path';
import { targetAt } from '../../cloud/recovery-target.ts';
import { prepareDirectory } from '../../cloud/restored-directory.ts';
import type { Config } from '../../config/config.ts';
import { RestoreDirectory } from '../../drivers/recovery-directory/restore-directory.ts';
import { readTime } from '../../platform/clock.ts';
import { isCode } from '../../platform/files.ts';
import { plural } from '../../platform/plural.ts';
import {
  type FoundPoint,
  type Restored,
  type RestoreOptions,
  type RestoreProgress,
  restoreFiles,
} from '../../recovery/points/restore.ts';
import { findJournal } from '../../recovery/repository/journal.ts';
import { Repository } from '../../recovery/repository/repository.ts';
import { unlockRepository } from '../../recovery/repository/repository-head.ts';
import { UsageError, type Words } from '../command.ts';
import { givenRecoveryKey, Progress } from '../terminal.ts';

export async function restore(config: Config, { values }: Words): Promise<number> {
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
  const target = targetAt(from, config);
  const keys = await unlockRepository(target, await givenRecoveryKey(values['key-file']));
  const repository = new Repository(target, keys);
  const restored = await write({
    repository,
    pointId: point,
    folder,
    isPartial: partial !== undefined,
  });
  const journal = await findJournal(repository, restored.manifest);
  const report = await prepareDirectory(folder.path, {
    journal,
    isAllRevoked: values['revoke-all-keys'] !== undefined,
    cut: readTime('cut_at', restored.manifest.cut_at),
    repositoryId: repository.id,
  });
  await folder.finish();
  printResult(restored, directory, report);
  return restored.missing.length === 0 ? 0 : 1;
}

/** First reports what the point lacks, and which newer points were skipped. */
export function tellFound({ manifest: { point_id: id, gaps }, passedOver }: FoundPoint): void {
  if (gaps.length > 0) {
    console.log(`${id} is partial. It lacks ${gaps.map(({ component }) => component).join(', ')}`);
  }
  if (passedOver.length > 0) {
    console.log(
      `${id} is the newest complete one; newer ones are partial or damaged: ${passedOver.join(', ')}`,
    );
  }
}

async function write(options: Omit<RestoreOptions, 'onProgress' | 'onPoint'>): Promise<Restored> {
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
    return await restoreFiles({ ...options, onProgress, onPoint: tellFound });
  } catch (error) {
    if (!isCode(error, 'ENOSPC')) throw error;
    throw new Error('The disk is full. Free some disk space and run this command again to resume', {
      cause: error,
    });
  } finally {
    bar.end();
  }
}

const PHASES = { reading: 'Reading all pieces', writing: 'Writing files' };

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
