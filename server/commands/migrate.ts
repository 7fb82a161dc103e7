/**
 * `cloudlet migrate`: moves the metadata of a stopped cloud to PostgreSQL, or back into the data
 * directory, and the bytes of its objects to S3, or back into files.
 */
import { addressOf, openBucket, openFiles } from '../cloud/blobs.ts';
import type { Config } from '../config/config.ts';
import { lockDirectory } from '../drivers/directory-lock.ts';
import { ENGINE_FOLDERS } from '../drivers/engines/all-engines.ts';
import { moveToPostgresql, moveToSqlite } from '../drivers/metadata-postgresql/move-metadata.ts';
import { PostgresqlMetadata } from '../drivers/metadata-postgresql/postgresql-metadata.ts';
import { SqliteMetadata } from '../drivers/metadata-sqlite/sqlite-metadata.ts';
import { AGELESS } from '../metadata/ages.ts';
import { BlobLocationStore } from '../metadata/blob-location-store.ts';
import { assertDatabaseThere, assertNotMoved, Identity } from '../metadata/identity.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { Alarms } from '../platform/alarms.ts';
import { systemClock as clock } from '../platform/clock.ts';
import { DiskSpace } from '../platform/host/disk-space.ts';
import { MasterKeys } from '../platform/master-key.ts';
import { plural } from '../platform/plural.ts';
import { type MovedBlobs, type MoveFigures, moveBlobs } from '../storage/blobs/blob-move.ts';
import { BlobSql } from '../storage/blobs/blob-sql.ts';
import type { BlobStore } from '../storage/blobs/blobs.ts';
import { type DataKeys, openDataKeys } from '../storage/keys/encryption.ts';
import { formatSize } from '../storage/listing/entries.ts';
import { type Command, UsageError } from './command.ts';
import { Progress } from './terminal.ts';

const HELP = `Usage: cloudlet migrate [--to postgresql | sqlite] [--blobs s3 | files]

Moves this cloud to other engines, or back. Stop Cloudlet first.

  --to postgresql   the metadata (accounts, keys, the ledger, buckets, objects and files up to 16 KiB) from the
                    data directory to the empty database in CLOUDLET_METADATA_URL
  --to sqlite       the metadata from the database in CLOUDLET_METADATA_URL to the data directory
  --blobs s3        the bytes of objects over 16 KiB from the data directory to the bucket in CLOUDLET_BLOBS_URL
  --blobs files     these bytes from the bucket in CLOUDLET_BLOBS_URL to the data directory

The move is complete once every row has been compared. Bytes are copied as they are stored, checksummed and encrypted; every 20th object is read back completely. The old copy stays but is no longer used. Run an interrupted move again to continue it. Machines and databases stay where they are.
`;

type Engine = 'postgresql' | 'sqlite';
type Place = 's3' | 'files';

export const MIGRATE: Command = {
  help: HELP,
  options: ['to', 'blobs'],
  run: async (config, { positionals, values: { to, blobs } }) => {
    const isEngine = to === undefined || to === 'postgresql' || to === 'sqlite';
    const isPlace = blobs === undefined || blobs === 's3' || blobs === 'files';
    if (positionals.length > 0 || !isEngine || !isPlace || (to ?? blobs) === undefined) {
      throw new UsageError(
        'migrate: expected --to postgresql, --to sqlite, --blobs s3 or --blobs files; see cloudlet migrate --help',
      );
    }
    if (to !== undefined && config.metadataUrl === '')
      throw new UsageError('migrate: set CLOUDLET_METADATA_URL to the PostgreSQL database');
    if (blobs !== undefined && config.blobsUrl === '')
      throw new UsageError('migrate: set CLOUDLET_BLOBS_URL to the S3 bucket');
    const lock = lockDirectory(config.dataDir);
    try {
      if (to !== undefined) await moveRows(config, to);
      const engine = to ?? (config.metadataUrl === '' ? 'sqlite' : 'postgresql');
      return blobs === undefined ? 0 : await moveBytes(config, engine, blobs);
    } finally {
      lock.release();
    }
  },
};

async function moveRows({ dataDir: directory, metadataUrl: url }: Config, to: Engine): Promise<void> {
  const deps = { directory, url, now: clock.now() };
  const tables = await (to === 'sqlite' ? moveToSqlite : moveToPostgresql)(deps);
  for (const { name, rows } of tables ?? []) if (rows > 0) console.log(`${name}: ${plural(rows, 'row')}`);
  const where = to === 'sqlite' ? directory : 'PostgreSQL';
  const how = `Start Cloudlet with${to === 'sqlite' ? 'out' : ''} CLOUDLET_METADATA_URL.`;
  console.log(tables === null ? `The metadata is already in ${where}.` : `Moved to ${where}. ${how}`);
}

/** `engine`: of the current metadata. */
async function moveBytes(config: Config, engine: Engine, to: Place): Promise<number> {
  const alarms = new Alarms(clock);
  const diskSpace = new DiskSpace({ clock, alarms, directory: config.dataDir });
  const metadata = await openMetadata(config, engine, alarms);
  try {
    await diskSpace.start();
    const releaseReserve = () => diskSpace.releaseReserve();
    const { dataDir } = config;
    const of = { dataDir, clock, releaseReserve, isElsewhere: engine === 'postgresql' };
    const { cloudId } = await Identity.open({ ...of, metadata, engineFolders: ENGINE_FOLDERS });
    const deps = { config, metadata, cloudId, clock, alarms, diskSpace };
    const address = addressOf(config);
    const places = new BlobLocationStore(metadata);
    const place = await places.find();
    const target = to === 's3' ? address.label : undefined;
    const targetName = target ?? `files of ${dataDir}`;
    if (place === target) {
      console.log(`The objects are ${target === undefined ? '' : 'in '}${targetName} already.`);
      return 0;
    }
    if (place !== undefined && place !== address.label) {
      throw new Error(`The objects of this cloud are in ${place}: set CLOUDLET_BLOBS_URL to it`);
    }
    const keys = MasterKeys.open({ dataDir, mayCreate: false, cloudId });
    const dataKeys = openDataKeys(metadata, keys, AGELESS);
    const files = await openFiles(deps);
    const bucket = await openBucket(deps, address, { mayMark: to === 's3' }).catch(async (error: unknown) => {
      await files.close();
      throw error;
    });
    const [from, into] = to === 's3' ? [files, bucket] : [bucket, files];
    const moved = await withProgress({ from, to: into, store: new BlobSql(metadata), dataKeys }).finally(() =>
      Promise.all([files.close(), bucket.close()]),
    );
    await (target === undefined ? places.forget() : places.write(target));
    printResult(moved, { to, dataDir, targetName });
    return moved.damaged.length === 0 ? 0 : 1;
  } finally {
    await metadata.close();
    await diskSpace.stop();
  }
}

function openMetadata(
  { dataDir: directory, metadataUrl: url }: Config,
  engine: Engine,
  alarms: Alarms,
): Promise<Metadata> {
  if (engine === 'postgresql') {
    // Every write is refused from then on, which ends the move.
    return PostgresqlMetadata.open({ url, clock, alarms, onTakenOver: () => {} });
  }
  assertNotMoved(directory);
  assertDatabaseThere(directory);
  return SqliteMetadata.open({ directory, clock, alarms });
}

async function withProgress(deps: {
  readonly from: BlobStore;
  readonly to: BlobStore;
  readonly store: BlobSql;
  readonly dataKeys: DataKeys;
}): Promise<MovedBlobs> {
  const bar = new Progress();
  const startedAt = clock.monotonic();
  const onProgress = (done: MoveFigures, total: MoveFigures) => {
    const share = (done.bytes + done.blobs) / Math.max(1, total.bytes + total.blobs);
    const rate = (done.bytes / Math.max(1, clock.monotonic() - startedAt)) * 1000;
    const blobs = `${done.blobs.toLocaleString('en')} of ${total.blobs.toLocaleString('en')} objects`;
    const bytes = `${formatSize(done.bytes)} of ${formatSize(total.bytes)}`;
    bar.show(share * 100, `${blobs}, ${bytes}, ${formatSize(Math.round(rate))}/s`);
  };
  try {
    return await moveBlobs({ ...deps, onProgress });
  } finally {
    bar.end();
  }
}

function printResult(
  { blobs, compared, damaged }: MovedBlobs,
  { to, dataDir, targetName }: { readonly to: Place; readonly dataDir: string; readonly targetName: string },
): void {
  console.log(`${plural(blobs, 'object')} moved, ${compared} read back and verified.`);
  for (const name of damaged) console.log(`damaged before the move: ${name}`);
  console.log(
    to === 's3'
      ? `The objects are in ${targetName}. Start Cloudlet with CLOUDLET_BLOBS_URL. The files in ` +
          `${dataDir}/blobs/?? are no longer used; remove them once the cloud works.`
      : `The objects are ${targetName}. Start Cloudlet without CLOUDLET_BLOBS_URL. The bucket is no longer ` +
          'used; empty it once the cloud works.',
  );
}
