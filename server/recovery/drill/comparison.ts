/** Compares a restored data directory, before its first start, with its recovery point. */
import { join } from 'node:path';
import { walkWholeLedger } from '../../billing/ledger/whole-ledger.ts';
import type { Reads } from '../../metadata/metadata.ts';
import { randomBelow } from '../../platform/ids.ts';
import { plural } from '../../platform/plural.ts';
import { type Component, type Entry, entriesOf, type Manifest } from '../points/manifest.ts';
import { type RestoreFolder, writeFiles } from '../points/restore.ts';
import type { Repository } from '../repository/repository.ts';
import { ComparisonStore, type Named, sameNamed } from './comparison-store.ts';
import type { DrillCheck } from './drill.ts';
import { DrillChecks, inMib } from './drill-checks.ts';
import { differenceOf, type HolesOf } from './file-comparison.ts';

export interface ComparisonOptions {
  readonly repository: Repository;
  readonly manifest: Manifest;
  /** The restored data directory. */
  readonly directory: string;
  /** Reads this many files of each component, chosen at random; null: all. */
  readonly sampled: number | null;
  readonly onProgress: (done: { readonly bytes: number; readonly totalBytes: number }) => void;
  /** An empty folder for the point's metadata. */
  readonly scratch: RestoreFolder & { readonly path: string };
  /** Copies the metadata to a directory, unchanged. */
  withMetadata<T>(directory: string, work: (metadata: ComparedMetadata) => Promise<T>): Promise<T>;
  readonly holesOf: HolesOf;
}

export interface ComparedMetadata {
  readonly reads: Reads;
  readonly tables: readonly string[];
}

/** Maximum differences listed; others are counted. */
const NAMED = 100;
const METADATA = 'metadata';
const PROGRESS = { isPartial: false, onProgress: () => {} };

/** Thrown if no comparison is possible. */
class NotCompared extends Error {}

/** Throws NotCompared, Damaged, or an Error when the point or the directory cannot be read. */
export async function compareRestored(options: ComparisonOptions): Promise<readonly DrillCheck[]> {
  const { repository, manifest, directory, scratch: folder } = options;
  const takes = (_entry: Entry, component: string) => component === METADATA;
  await writeFiles({ ...PROGRESS, repository, folder, takes }, manifest);
  return options.withMetadata(folder.path, (point) =>
    options.withMetadata(directory, (restored) => compareAll(options, sideOf(point), sideOf(restored))),
  );
}

/** The metadata of the point, or the restored metadata. */
interface Side extends ComparedMetadata {
  readonly store: ComparisonStore;
}

function sideOf(metadata: ComparedMetadata): Side {
  return { ...metadata, store: new ComparisonStore(metadata.reads) };
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
  const { seq, hash, credits } = await walkWholeLedger(reads);
  return `${plural(seq, 'transfer')}, the last one ${hash.slice(0, 12)}, balances of ${credits} credits`;
}

interface FilesOptions extends ComparisonOptions {
  readonly component: Component;
  readonly progress: FileProgress;
  readonly store: ComparisonStore;
}

/** Compares every byte of the files, or of a sample, with the pieces. */
async function compareFiles(checks: DrillChecks, options: FilesOptions): Promise<void> {
  const { repository, component, directory, progress, sampled, store, holesOf } = options;
  const chosen = await chooseFiles(entriesOf(repository, component), sampled);
  const wrong: string[] = [];
  let bytes = 0;
  for (const entry of chosen.entries) {
    const difference = await differenceOf(entry, { repository, path: join(directory, entry.path), holesOf });
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
    return `${some} ${plural(chosen.total, 'file')}: equal bytes (${inMib(bytes)})`;
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
