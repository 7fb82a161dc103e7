/** Compares a restored data directory, before its first start, with its recovery point. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LedgerWalk } from '../billing/ledger/checks-walk.ts';
import { LedgerStore } from '../billing/ledger/ledger-store.ts';
import { openReader, tableNames } from '../drivers/metadata-sqlite/connection.ts';
import { SqliteReads } from '../drivers/metadata-sqlite/sqlite-reads.ts';
import { ScratchFolder } from '../drivers/recovery-directory/scratch-folder.ts';
import type { Reads } from '../metadata/metadata.ts';
import { randomBelow } from '../platform/ids.ts';
import { plural } from '../platform/plural.ts';
import { ComparisonStore, type Named, sameNamed } from '../recovery/drill/comparison-store.ts';
import type { DrillCheck } from '../recovery/drill/drill.ts';
import { DrillChecks } from '../recovery/drill/drill-checks.ts';
import { type Component, type Entry, entriesOf, type Manifest } from '../recovery/points/manifest.ts';
import { writeFiles } from '../recovery/points/restore.ts';
import type { Repository } from '../recovery/repository/repository.ts';
import { differenceOf } from './file-comparison.ts';

export interface ComparisonOptions {
  readonly repository: Repository;
  readonly manifest: Manifest;
  /** The restored data directory. */
  readonly directory: string;
  /** Reads this many files of each component, chosen at random; null: all. */
  readonly sampled: number | null;
  readonly onProgress: (done: { readonly bytes: number; readonly totalBytes: number }) => void;
}

/** Differences that are named; others are counted. */
const NAMED = 100;
const METADATA = 'metadata';
const PROGRESS = { isPartial: false, onProgress: () => {} };

/** Thrown when nothing can be said. */
class NotCompared extends Error {}

/** Throws NotCompared, Damaged, or an Error when the point or the directory cannot be read. */
export async function compareRestored(options: ComparisonOptions): Promise<readonly DrillCheck[]> {
  const { repository, manifest, directory } = options;
  const scratch = await mkdtemp(join(tmpdir(), 'cloudlet-compare-'));
  try {
    const folder = new ScratchFolder(scratch, 0);
    const takes = (_entry: Entry, component: string) => component === METADATA;
    await writeFiles({ ...PROGRESS, repository, folder, takes }, manifest);
    const [point, restored] = [openReader(scratch), openReader(directory)];
    try {
      return await compareAll(options, sideOf(point), sideOf(restored));
    } finally {
      for (const each of [point, restored]) each.close();
    }
  } finally {
    await rm(scratch, { recursive: true });
  }
}

/** The metadata of the point, or those that were restored. */
interface Side {
  readonly reads: Reads;
  readonly store: ComparisonStore;
  readonly tables: readonly string[];
}

function sideOf(database: ReturnType<typeof openReader>): Side {
  const reads = new SqliteReads(database);
  return { reads, store: new ComparisonStore(reads), tables: tableNames(database) };
}

async function compareAll(options: ComparisonOptions, point: Side, restored: Side): Promise<DrillCheck[]> {
  const checks = new DrillChecks();
  const starts = await restored.store.starts();
  if (starts > 0) {
    throw new NotCompared(
      `the cloud in ${options.directory} was started ${plural(starts, 'time')} after the restore, so its data has changed. ` +
        'Compare before the first start, or drill the recovery point',
    );
  }
  const same = (what: string, of: (side: Side) => Promise<Named>) =>
    checks.run(what, async () => `all ${sameNamed(await of(point), await of(restored))} are the same`);
  await same('tables', ({ store, tables }) => store.tables(tables));
  await same('accounts', ({ store }) => store.accounts());
  await same('buckets', ({ store }) => store.buckets());
  await same('machines', ({ store }) => store.machines());
  await same('databases', ({ store }) => store.databases());
  await checks.run('ledger', () => compareLedgers(point.reads, restored.reads));
  const progress = new FileProgress(options);
  for (const component of options.manifest.components) {
    if (component.name === METADATA) continue;
    await compareFiles(checks, { ...options, component, progress, store: point.store });
  }
  return checks.all;
}

async function compareLedgers(point: Reads, restored: Reads): Promise<string> {
  const [one, other] = await Promise.all([point, restored].map(ledgerOf));
  if (one !== other) throw new Error(`the point has ${one}, the restored cloud ${other}`);
  return `${one}: equal in both`;
}

async function ledgerOf(reads: Reads | undefined): Promise<string> {
  if (reads === undefined) return '';
  const store = new LedgerStore(reads);
  const walk = new LedgerWalk({ store });
  const problem = await walk.wholeProblem();
  if (problem !== null) throw new Error(problem);
  const { micro } = await store.allCached();
  const [seq, hash] = [Number(walk.head.seq), walk.head.hash.slice(0, 12)];
  return `${plural(seq, 'transfer')}, the last one ${hash}, balances of ${Number(micro) / 1e6} credits`;
}

interface FilesOptions extends ComparisonOptions {
  readonly component: Component;
  readonly progress: FileProgress;
  readonly store: ComparisonStore;
}

/** Every byte of the files, or of some, against the pieces. */
async function compareFiles(checks: DrillChecks, options: FilesOptions): Promise<void> {
  const { repository, component, directory, progress, sampled, store } = options;
  const chosen = await chooseFiles(entriesOf(repository, component), sampled);
  const wrong: string[] = [];
  let bytes = 0;
  for (const entry of chosen.entries) {
    const difference = await differenceOf(repository, join(directory, entry.path), entry);
    bytes += entry.size_bytes;
    progress.add(entry.size_bytes);
    if (difference === null) continue;
    const object = await store.objectOf(entry.path.slice(entry.path.lastIndexOf('/') + 1));
    wrong.push(`${entry.path}${object === undefined ? '' : ` (${object})`} ${difference}`);
  }
  await checks.run(`files: ${component.name}`, async () => {
    if (wrong.length > NAMED) wrong.splice(NAMED, wrong.length, `and ${wrong.length - NAMED} more`);
    if (wrong.length > 0) throw new Error(wrong.join('\n'));
    const some = chosen.entries.length === chosen.total ? 'all' : `${chosen.entries.length} of`;
    return `${some} ${plural(chosen.total, 'file')}: equal bytes (${(bytes / 2 ** 20).toFixed(1)} MiB)`;
  });
}

async function chooseFiles(all: AsyncIterable<Entry>, most: number | null) {
  const entries: Entry[] = [];
  let total = 0;
  for await (const entry of all) {
    const at = most === null || total < most ? total : randomBelow(total + 1);
    if (most === null || at < most) entries[at] = entry;
    total++;
  }
  return { entries, total };
}

class FileProgress {
  readonly #options: ComparisonOptions;
  #bytes = 0;

  constructor(options: ComparisonOptions) {
    this.#options = options;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    const { manifest, onProgress } = this.#options;
    const totalBytes = manifest.components.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
    onProgress({ bytes: this.#bytes, totalBytes });
  }
}
