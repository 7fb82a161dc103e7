/** Opens data directories that no cloud uses: restored ones, copies of points, and those of drills. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileBlobStore } from '../drivers/blobs-file/blobs-file.ts';
import { KeptDumpFiles } from '../drivers/kept-dump-files.ts';
import { openReader, SqliteReads, tableNames } from '../drivers/metadata-sqlite/connection.ts';
import { SqliteMetadata } from '../drivers/metadata-sqlite/sqlite-metadata.ts';
import { holesOf } from '../drivers/qemu/images/file-holes.ts';
import { ScratchFolder } from '../drivers/recovery-directory/scratch-folder.ts';
import { Alarms } from '../platform/alarms.ts';
import { type Clock, systemClock } from '../platform/clock.ts';
import { MasterKeys } from '../platform/master-key.ts';
import {
  type ComparedMetadata,
  type ComparisonOptions,
  compareRestored,
} from '../recovery/drill/comparison.ts';
import { type FirstStart, prepareFirstStart } from '../recovery/points/first-start.ts';
import type { OpenedFolder, OpenedPointsDeps } from '../recovery/points/opened-points.ts';

/** The metadata of a directory, unchanged, while `work` runs. */
export async function withMetadata<T>(
  directory: string,
  work: (metadata: ComparedMetadata) => Promise<T>,
): Promise<T> {
  const database = openReader(directory);
  try {
    return await work({ reads: new SqliteReads(database), tables: tableNames(database) });
  } finally {
    database.close();
  }
}

/** See prepareFirstStart(). */
export async function prepareDirectory(directory: string, first: FirstStart): Promise<readonly string[]> {
  const clock = systemClock;
  const metadata = await SqliteMetadata.open({ directory, clock, alarms: new Alarms(clock) });
  try {
    const dumps = await KeptDumpFiles.sizes(join(directory, 'databases', 'kept'));
    return await prepareFirstStart({ metadata, dumps, now: clock.now() }, first);
  } finally {
    await metadata.close();
  }
}

type Compared = Omit<ComparisonOptions, 'scratch' | 'withMetadata' | 'holesOf'>;

/** See compareRestored(). */
export async function compareDirectory(options: Compared): Promise<ReturnType<typeof compareRestored>> {
  const folder = await mkdtemp(join(tmpdir(), 'cloudlet-compare-'));
  try {
    const scratch = new ScratchFolder(folder, 0);
    return await compareRestored({ ...options, scratch, withMetadata, holesOf });
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Opens the copy of a point's metadata beside the live cloud. */
export function pointOpener(
  clock: Clock,
  assertSpace: (bytes: number) => void,
): OpenedPointsDeps['openFolder'] {
  return async (folder, keys): Promise<OpenedFolder> => {
    const alarms = new Alarms(clock);
    const metadata = await SqliteMetadata.open({ directory: folder, clock, alarms });
    const directory = join(folder, 'blobs');
    const few = { threads: 1, directWrites: 0 };
    const blobs = await FileBlobStore.open({ directory, ...few, clock, alarms, diskSpace: { assertSpace } });
    const close = async () => {
      await blobs.close();
      await metadata.close();
    };
    return { reads: metadata, sealer: MasterKeys.read(keys.text, keys.path), blobs, close };
  };
}
