/** The steps of a restore drill, in its own process: read, restore, start, compare. */
import { verifyChain } from '../../audit/chain.ts';
import { walkWholeLedger } from '../../billing/ledger/whole-ledger.ts';
import type { Reads } from '../../metadata/metadata.ts';
import { readTime } from '../../platform/clock.ts';
import { plural } from '../../platform/plural.ts';
import type { LogVerdict } from '../logs/log-verification.ts';
import type { FirstStart } from '../points/first-start.ts';
import { type Manifest, readManifest } from '../points/manifest.ts';
import { type RestoreFolder, writeFiles } from '../points/restore.ts';
import { findJournal } from '../repository/journal.ts';
import type { Repository } from '../repository/repository.ts';
import { type ChainHead, type DrillFindings, type DrillRequest, DrillSkipped } from './drill.ts';
import {
  CheckSkipped,
  compareCounts,
  compareObjects,
  DrillChecks,
  inMib,
  type ObjectSample,
} from './drill-checks.ts';
import { chooseMachine, type DrillMachine, isOfMachine } from './drill-machine.ts';
import { readLogs } from './log-check.ts';
import { PieceSet, type Verdict, verifyPoint } from './verification.ts';

/** Results of testing the databases of one engine in the drill cloud. */
export interface DatabaseTrials {
  readonly engine: string;
  /** Databases tested, or that would have been tested. */
  readonly databases: number;
  readonly opened: number;
  readonly tables: number;
  /** The engine's estimate; null: it has none. */
  readonly rows: number | null;
  /** Databases that could not be opened, with the reason; only the first ones. */
  readonly failures: readonly string[];
  /** Why this host cannot test them; null: it can. */
  readonly unavailable: string | null;
}

/** The cloud started by the drill. Rejects with CheckSkipped if this host lacks a requirement. */
export interface DrillCloud {
  readonly reads: Reads;
  /** Health as reported by its API. Rejects if the API does not respond. */
  status(): Promise<string>;
  /** Reads these files of objects and compares them with their rows. Resolves with their bytes. */
  readObjects(names: readonly string[]): Promise<number>;
  tryDatabases(): Promise<readonly DatabaseTrials[]>;
  /** Recovers one database server to the end of its log; resolves with a summary. */
  tryLog(verdict: LogVerdict): Promise<string>;
  /** Boots a machine; resolves with its first sign of life. */
  tryMachine(machine: DrillMachine): Promise<string>;
  close(): Promise<void>;
}

/** Dependencies of a rehearsal on the host and on other domains. */
export interface RehearsalDeps {
  readonly repository: Repository;
  readonly folder: RestoreFolder & { readonly path: string };
  /** Time limit for reading logs, ms. */
  readonly logsWithinMs: number;
  /** Opens the metadata in the folder as they are, with any schema version. */
  withReads<T>(work: (reads: Reads) => Promise<T>): Promise<T>;
  /** See prepareFirstStart(). */
  prepareFirstStart(first: FirstStart): Promise<unknown>;
  /** Starts a cloud on the folder, without listeners. */
  startCloud(): Promise<DrillCloud>;
  readonly say: (stage: string) => void;
}

interface Rehearsal extends RehearsalDeps {
  readonly checks: DrillChecks;
  /** Pieces that were read and are intact. */
  readonly sound: PieceSet;
}

/** Components restored first; the metadata decides which others are needed. */
const FIRST = ['keys', 'metadata'];
const SIGNAL = new AbortController().signal;

/** Throws DrillSkipped if there is not enough disk space. */
export async function rehearse(
  { pointId, heads }: Pick<DrillRequest, 'pointId' | 'heads'>,
  deps: RehearsalDeps,
): Promise<DrillFindings> {
  const rehearsal: Rehearsal = { ...deps, checks: new DrillChecks(), sound: new PieceSet() };
  const { checks, repository, sound, say, logsWithinMs: withinMs } = rehearsal;
  say('reading');
  const verdict = await readAll(rehearsal, pointId);
  const how = { repository, sound, signal: SIGNAL, withinMs };
  const logs = heads === null ? null : await readLogs(checks, { ...how, heads });
  const none = { checks: checks.all, verdict, logs, cloud: null, chainHeads: [] };
  if (verdict.damagedFiles > 0) return none;
  const found = await repository.getManifest(pointId);
  if (found === undefined) throw new Error('the manifest is missing');
  const manifest = readManifest(found.bytes);
  const chainHeads = await restoreAndTry(rehearsal, manifest, logs);
  return { ...none, cloud: manifest.cloud ?? null, chainHeads };
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
): Promise<readonly ChainHead[]> {
  const { checks, say, folder } = rehearsal;
  say('restoring');
  const chosen = await restore(rehearsal, manifest);
  say('starting');
  let cloud: DrillCloud | undefined;
  const isUp = await checks.run('start', async () => {
    cloud = await rehearsal.startCloud();
    return cloud.status();
  });
  if (cloud === undefined) return [];
  try {
    return isUp ? await compare(rehearsal, cloud, { manifest, logs, chosen }) : [];
  } finally {
    await cloud.close().catch((error) => {
      const detail = `${(error as Error).message} in ${folder.path}`;
      checks.all.push({ name: 'stop', state: 'failed', detail });
    });
  }
}

interface Restored {
  readonly manifest: Manifest;
  readonly logs: LogVerdict | null;
  readonly chosen: Chosen;
}

async function compare(
  rehearsal: Rehearsal,
  cloud: DrillCloud,
  { manifest, logs, chosen: { sample, machine } }: Restored,
): Promise<readonly ChainHead[]> {
  const { checks, say } = rehearsal;
  say('comparing');
  await checks.run('counts', () => compareCounts(manifest, cloud.reads));
  const chainHeads = await walkChains(checks, cloud.reads);
  await checks.run('sampled objects', async () => {
    const names = sample.files.map((path) => path.slice(path.lastIndexOf('/') + 1));
    const bytes = await cloud.readObjects(names);
    return `${plural(names.length, 'file')} of ${sample.total} read and compared (${inMib(bytes)})`;
  });
  say('opening databases');
  await tryDatabases(checks, cloud, manifest);
  if (logs !== null) {
    say('replaying a log');
    await checks.run('replayed log', () => cloud.tryLog(logs));
  }
  await tryMachine(rehearsal, cloud, machine);
  return chainHeads;
}

interface Chosen {
  readonly sample: ObjectSample;
  /** null: the point has none. Not restored if space is short. */
  readonly machine: (DrillMachine & { readonly hasRoom: boolean }) | null;
}

/** Restores the selected files. Throws DrillSkipped if there is not enough disk space. */
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
  const machine = await rehearsal.withReads(async (reads) => {
    await checks.run('objects', async () => {
      sample = await compareObjects(repository, manifest, reads);
      return `the bytes of all ${plural(sample.total, 'file')} are in the point`;
    });
    return chooseMachine(repository, manifest, reads);
  });
  // A dump and the database loaded from it.
  await assertRoom(folder, sample.bytes + 2 * sizeOf('databases'));
  const sampled = new Set(sample.files);
  await write((path, component) => component === 'databases' || sampled.has(path));
  // Databases are counted first, and counted twice, because loading needs the same space again.
  const hasRoom = machine !== null && machine.bytes + sizeOf('databases') <= (await folder.freeBytes());
  if (hasRoom) await write((path) => isOfMachine(machine, path));
  await checks.run('first start', async () => {
    const journal = await findJournal(repository, manifest);
    const first = {
      isAllRevoked: false,
      cut: readTime('cut_at', manifest.cut_at),
      repositoryId: repository.id,
    };
    await rehearsal.prepareFirstStart({ ...first, journal });
    if (typeof journal !== 'string') return `revocations up to ${journal.written_at} UTC are applied`;
    if (journal.startsWith('the journal is damaged')) throw new Error(journal);
    throw new CheckSkipped(`revocations are unknown: ${journal}`);
  });
  return { sample, machine: machine && { ...machine, hasRoom } };
}

async function assertRoom(folder: RestoreFolder, neededBytes: number): Promise<void> {
  const freeBytes = await folder.freeBytes();
  if (neededBytes <= freeBytes) return;
  throw new DrillSkipped(
    `a drill needs ${inMib(neededBytes)} of disk, and only ${inMib(freeBytes)} can be used: free space, or ` +
      'set CLOUDLET_DRILL_DIR to a directory on another disk',
  );
}

async function walkChains(checks: DrillChecks, reads: Reads): Promise<readonly ChainHead[]> {
  const heads: ChainHead[] = [];
  await checks.run('ledger', async () => {
    const { seq, hash, credits } = await walkWholeLedger(reads);
    if (seq > 0) heads.push({ chain: 'ledger', number: seq, hash });
    return `${plural(seq, 'transfer')} verified, balances of ${credits} credits add up`;
  });
  await checks.run('audit log', async () => {
    const { ranges, rows, head, fault } = await verifyChain(reads);
    if (fault !== null) throw new Error(fault);
    if (head !== null) heads.push({ chain: 'audit log', number: head.range, hash: head.hash });
    return `${plural(rows, 'row')} in ${plural(ranges, 'range')} verified`;
  });
  return heads;
}

async function tryMachine(
  { checks, say, folder }: Rehearsal,
  cloud: DrillCloud,
  machine: Chosen['machine'],
): Promise<void> {
  if (machine === null) return;
  say('booting a machine');
  await checks.run('machine', async () => {
    if (machine.hasRoom) return cloud.tryMachine(machine);
    const [needed, free] = [machine.bytes, await folder.freeBytes()].map(inMib);
    throw new CheckSkipped(`not booted: ${needed} of disk are needed, and only ${free} can be used`);
  });
}

async function tryDatabases(checks: DrillChecks, cloud: DrillCloud, { gaps }: Manifest): Promise<void> {
  const missing = gaps.filter(({ component }) => component.startsWith('database '));
  const more = missing.length === 0 ? '' : `; ${plural(missing.length, 'database')} missing from the point`;
  for (const { engine, opened, tables, rows, ...found } of await cloud.tryDatabases()) {
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
