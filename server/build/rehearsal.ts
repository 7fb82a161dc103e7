/** The story of a restore drill, in its own process: reads, restores, starts, compares. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { LedgerWalk } from '../billing/ledger/checks-walk.ts';
import { LedgerStore } from '../billing/ledger/ledger-store.ts';
import type { Config } from '../config/config.ts';
import { tryDatabases } from '../databases/trials.ts';
import type { DrillOrder } from '../drivers/drill-process/drill-ground.ts';
import { openReader } from '../drivers/metadata-sqlite/connection.ts';
import { SqliteReads } from '../drivers/metadata-sqlite/sqlite-reads.ts';
import { ScratchFolder } from '../drivers/recovery-directory/scratch-folder.ts';
import type { Reads } from '../metadata/metadata.ts';
import { readTime } from '../platform/clock.ts';
import { plural } from '../platform/plural.ts';
import { type DrillFindings, DrillSkipped, type LedgerHead } from '../recovery/drill/drill.ts';
import {
  CheckSkipped,
  compareCounts,
  compareObjects,
  DrillChecks,
  type ObjectSample,
} from '../recovery/drill/drill-checks.ts';
import { PieceSet, type Verdict, verifyPoint } from '../recovery/drill/verification.ts';
import type { LogVerdict } from '../recovery/logs/log-verification.ts';
import { type Manifest, readManifest } from '../recovery/points/manifest.ts';
import { writeFiles } from '../recovery/points/restore.ts';
import { findJournal } from '../recovery/repository/journal.ts';
import { Repository } from '../recovery/repository/repository.ts';
import { BlobSql } from '../storage/blobs/blob-sql.ts';
import { readSampledBlobs } from '../storage/blobs/sampled-blobs.ts';
import { openDataKeys } from '../storage/keys/encryption.ts';
import type { Cloud } from './cloud.ts';
import { buildDrillCloud, closeDrillCloud, drillConfig } from './drill-cloud.ts';
import { readLogs, tryLog } from './drill-logs.ts';
import { bootMachine, chooseMachine, type DrillMachine, isOfMachine } from './drill-machine.ts';
import { prepareFirstStart } from './first-start.ts';
import { targetAt } from './recovery-target.ts';

/** Everything that the process needs besides the request. */
export interface DrillMeans {
  /** Settings of the live cloud. */
  readonly config: Config;
  /** To be left free on the disk of the live cloud. */
  readonly reserveBytes: number;
}

interface Rehearsal {
  readonly config: Config;
  readonly name: string;
  readonly repository: Repository;
  readonly folder: ScratchFolder;
  readonly checks: DrillChecks;
  /** Pieces that were read and are intact. */
  readonly sound: PieceSet;
  readonly say: (stage: string) => void;
}

/** Components that are restored first; what else is, is chosen by what they say. */
const FIRST = ['keys', 'metadata'];
const SIGNAL = new AbortController().signal;
const MICRO = 1_000_000;
/** Share of a drill's time for archived logs, at most. */
const LOGS_SHARE = 1 / 3;

/** Throws DrillSkipped when there is no room. */
export async function rehearse(order: DrillOrder, say: (stage: string) => void): Promise<DrillFindings> {
  const { config: live, reserveBytes } = order.means as DrillMeans;
  const { repositoryId, repositoryKey, pointId, heads } = order.request;
  const target = targetAt(live.recoveryTarget || join(live.dataDir, 'recovery'), live);
  const key = Buffer.from(repositoryKey, 'hex');
  const rehearsal: Rehearsal = {
    config: drillConfig(live, order.folder),
    name: order.name,
    repository: new Repository(target, { key, repositoryId }),
    folder: new ScratchFolder(order.folder, sharesDisk(order.folder, live.dataDir) ? reserveBytes : 0),
    checks: new DrillChecks(),
    sound: new PieceSet(),
    say,
  };
  say('reading');
  const verdict = await readAll(rehearsal, pointId);
  const { checks, repository, sound } = rehearsal;
  const withinMs = live.drillMinutes * 60_000 * LOGS_SHARE;
  const how = { repository, sound, signal: SIGNAL, withinMs };
  const logs = heads === null ? null : await readLogs(checks, { ...how, heads });
  const none = { checks: checks.all, verdict, logs, cloud: null, ledgerHead: null };
  if (verdict.damagedFiles > 0) return none;
  const found = await repository.getManifest(pointId);
  if (found === undefined) throw new Error('the manifest is missing');
  const manifest = readManifest(found.bytes);
  const ledgerHead = await restoreAndTry(rehearsal, manifest, logs);
  return { ...none, cloud: manifest.cloud ?? null, ledgerHead };
}

function sharesDisk(one: string, other: string): boolean {
  return statSync(one).dev === statSync(other).dev;
}

async function readAll({ repository, checks, sound }: Rehearsal, pointId: string): Promise<Verdict> {
  let totalBytes = 0;
  const onProgress = (done: { readonly totalBytes: number }) => {
    totalBytes = done.totalBytes;
  };
  const verdict = await verifyPoint({
    repository,
    pointId,
    signal: SIGNAL,
    isQuick: true,
    sound,
    onProgress,
  });
  await checks.run('repository', async () => {
    const { damagedFiles: count, damage } = verdict;
    if (count === 0) return `all data is intact (${inMib(totalBytes)})`;
    throw new Error(`${plural(count, 'file')} missing or damaged, the first is ${damage[0]?.file}`);
  });
  return verdict;
}

async function restoreAndTry(
  rehearsal: Rehearsal,
  manifest: Manifest,
  logs: LogVerdict | null,
): Promise<LedgerHead | null> {
  const { checks, say, folder, config, name, repository } = rehearsal;
  say('restoring');
  const { sample, machine } = await restore(rehearsal, manifest);
  say('starting');
  let cloud: Cloud | undefined;
  const isUp = await checks.run('start', async () => {
    cloud = await buildDrillCloud(config, name);
    return statusOf(cloud);
  });
  if (!isUp || cloud === undefined) return null;
  try {
    say('comparing');
    const { metadata, blobs, keys } = cloud.within.base;
    await checks.run('counts', () => compareCounts(manifest, metadata));
    const head = await walkLedger(checks, metadata);
    await checks.run('sampled objects', async () => {
      const names = sample.files.map((path) => path.slice(path.lastIndexOf('/') + 1));
      const deps = { store: new BlobSql(metadata), blobs, dataKeys: openDataKeys(metadata, keys) };
      const bytes = await readSampledBlobs(names, deps);
      return `${plural(names.length, 'file')} of ${sample.total} read and compared (${inMib(bytes)})`;
    });
    say('opening databases');
    await tryEngines(checks, cloud, manifest);
    if (logs !== null) {
      say('replaying a log');
      const { engines } = cloud.within.databases;
      await tryLog(checks, { logs: repository.logs, engines, folder, verdict: logs });
    }
    await tryMachine(rehearsal, cloud, machine);
    return head;
  } finally {
    await closeDrillCloud(cloud).catch((error) => {
      checks.all.push({
        name: 'stop',
        state: 'failed',
        detail: `${(error as Error).message} in ${folder.path}`,
      });
    });
  }
}

interface Chosen {
  readonly sample: ObjectSample;
  /** null: the point has none. Without room it was not restored. */
  readonly machine: (DrillMachine & { readonly hasRoom: boolean }) | null;
}

/** Restores the chosen files. Throws DrillSkipped when there is no room. */
async function restore(rehearsal: Rehearsal, manifest: Manifest): Promise<Chosen> {
  const { repository, folder, checks } = rehearsal;
  const write = (takes: (path: string, component: string) => boolean) =>
    writeFiles(
      {
        repository,
        folder,
        isPartial: false,
        onProgress: () => {},
        takes: ({ path }, component) => takes(path, component),
      },
      manifest,
    );
  const sizeOf = (name: string) => manifest.components.find((one) => one.name === name)?.size_bytes ?? 0;
  await assertRoom(folder, sizeOf('keys') + 2 * sizeOf('metadata'));
  await write((_path, component) => FIRST.includes(component));
  let sample: ObjectSample = { files: [], bytes: 0, total: 0 };
  const machine = await withReads(folder.path, async (reads) => {
    await checks.run('objects', async () => {
      sample = await compareObjects(repository, manifest, reads);
      return `the bytes of all ${plural(sample.total, 'file')} are in the point`;
    });
    return chooseMachine(repository, manifest, reads);
  });
  // A dump and the database that it becomes.
  await assertRoom(folder, sample.bytes + 2 * sizeOf('databases'));
  const sampled = new Set(sample.files);
  await write((path, component) => component === 'databases' || sampled.has(path));
  // Databases come first, and take as much again once they are loaded.
  const hasRoom = machine !== null && machine.bytes + sizeOf('databases') <= (await folder.freeBytes());
  if (hasRoom) await write((path) => isOfMachine(machine, path));
  await checks.run('first start', async () => {
    const journal = await findJournal(repository, manifest);
    const first = {
      isAllRevoked: false,
      cut: readTime('cut_at', manifest.cut_at),
      repositoryId: repository.id,
    };
    await prepareFirstStart(folder.path, { ...first, journal });
    if (typeof journal !== 'string') return `revocations up to ${journal.written_at} UTC are applied`;
    if (journal.startsWith('the journal is damaged')) throw new Error(journal);
    throw new CheckSkipped(`revocations are unknown: ${journal}`);
  });
  return { sample, machine: machine && { ...machine, hasRoom } };
}

async function withReads<T>(directory: string, work: (reads: Reads) => Promise<T>): Promise<T> {
  const database = openReader(directory);
  try {
    return await work(new SqliteReads(database));
  } finally {
    database.close();
  }
}

async function assertRoom(folder: ScratchFolder, neededBytes: number): Promise<void> {
  const freeBytes = await folder.freeBytes();
  if (neededBytes <= freeBytes) return;
  throw new DrillSkipped(
    `a drill needs ${inMib(neededBytes)} of disk, and only ${inMib(freeBytes)} can be used: free space, or ` +
      'set CLOUDLET_DRILL_DIR to a directory on another disk',
  );
}

/** The second cloud's own word on itself, by its API. */
async function statusOf({ api }: Cloud): Promise<string> {
  await api.ready();
  const headers = { host: 'localhost' };
  const { statusCode, body } = await api.inject({ method: 'GET', url: '/api/system/status', headers });
  if (statusCode !== 200) throw new Error(`the status call returned ${statusCode}: ${body.slice(0, 200)}`);
  const { version } = JSON.parse(body) as { version: string };
  return `a second cloud, version ${version}, opens the data and answers`;
}

async function walkLedger(checks: DrillChecks, metadata: Reads): Promise<LedgerHead | null> {
  const store = new LedgerStore(metadata);
  const walk = new LedgerWalk({ store });
  const isSound = await checks.run('ledger', async () => {
    const problem = await walk.wholeProblem();
    if (problem !== null) throw new Error(problem);
    const { micro } = await store.allCached();
    const credits = Number(micro) / MICRO;
    return `${plural(Number(walk.head.seq), 'transfer')} verified, balances of ${credits} credits add up`;
  });
  return isSound ? { seq: Number(walk.head.seq), hash: walk.head.hash } : null;
}

async function tryMachine(
  { checks, say, folder }: Rehearsal,
  cloud: Cloud,
  machine: Chosen['machine'],
): Promise<void> {
  if (machine === null) return;
  say('booting a machine');
  await checks.run('machine', async () => {
    if (machine.hasRoom) return bootMachine(cloud, machine);
    const [needed, free] = [machine.bytes, await folder.freeBytes()].map(inMib);
    throw new CheckSkipped(`not booted: ${needed} of disk are needed, and only ${free} can be used`);
  });
}

async function tryEngines(checks: DrillChecks, cloud: Cloud, { gaps }: Manifest): Promise<void> {
  const missing = gaps.filter(({ component }) => component.startsWith('database '));
  const more = missing.length === 0 ? '' : `; ${plural(missing.length, 'database')} missing from the point`;
  const { databases } = cloud.within;
  for (const { engine, opened, tables, rows, ...found } of await tryDatabases(databases, SIGNAL)) {
    await checks.run(`${engine} databases`, async () => {
      const all = plural(found.databases, 'database');
      if (found.unavailable !== null) throw new CheckSkipped(`${all} not tested: ${found.unavailable}`);
      if (found.failures.length > 0)
        throw new Error(
          `${found.databases - opened} of ${all} cannot be opened: ${found.failures.join('; ')}`,
        );
      const about = rows === null ? '' : ` with about ${plural(rows, 'row')}`;
      return `${all} loaded and opened: ${plural(tables, 'table')}${about}${more}`;
    });
  }
}

function inMib(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
