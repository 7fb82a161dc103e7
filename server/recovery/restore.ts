/**
 * A whole cloud from a recovery point, on an empty directory. It needs the repository and its recovery key,
 * and nothing of the cloud that was lost.
 *
 * Every piece is read before anything is written. Then all files are written to a folder of their own and
 * moved to their place at the end, so that a cloud is there whole or not at all. Done again after a kill, it
 * goes on where it was.
 */
import { HOLE } from './chunks.ts';
import { entriesOf } from './entries.ts';
import { type Entry, type Manifest, readManifest } from './manifest.ts';
import { Damaged } from './piece-box.ts';
import { manifestFile, Repository, type RepositoryKeys } from './repository.ts';
import type { Target } from './target.ts';
import { type DamagedFile, verifyPoint } from './verification.ts';

/** The directory that is being made. */
export interface RestoreFolder {
  /** Bytes that may be written. */
  freeBytes(): Promise<number>;
  /** True when an earlier try for that point found all pieces right, and has begun to write. */
  isChecked(pointId: string): Promise<boolean>;
  /** From now on there is something. Throws when there is another point's restore. */
  begin(pointId: string, isChecked: boolean): Promise<void>;
  /** True when an earlier try wrote this file whole. */
  has(path: string, sizeBytes: number): Promise<boolean>;
  /** Where that file is to be written; its folder is there then. Throws when that is outside. */
  placeFor(path: string): Promise<string>;
  /** All that was written is on disk. */
  sync(): Promise<void>;
}

export interface RestoreOptions {
  readonly target: Target;
  readonly recoveryKey: Uint8Array;
  /** `latest`: the newest one that was not deleted. */
  readonly pointId: string;
  readonly folder: RestoreFolder;
  /** Goes on when pieces are missing or damaged, and names the files. */
  readonly isPartial: boolean;
  readonly onProgress: (done: RestoreProgress) => void;
}

export interface RestoreProgress {
  /** Pieces are read first. */
  readonly phase: 'reading' | 'writing';
  readonly bytes: number;
  readonly totalBytes: number;
}

export interface Restored {
  readonly manifest: Manifest;
  readonly repositoryId: string;
  /** Files of the cloud that could not be had, and why. */
  readonly missing: readonly string[];
}

/** Without these there is no cloud. */
const NEEDED = ['master.key', 'metadata.db'];
const FILES_AT_ONCE = 4;

/** Throws an Error, before anything is written when key, point, pieces or room are not right. */
export async function restoreFiles(options: RestoreOptions): Promise<Restored> {
  const { target, recoveryKey, folder, isPartial } = options;
  const keys: RepositoryKeys = await Repository.unlock(target, recoveryKey);
  const repository = new Repository(target, keys);
  const manifest = await findPoint(repository, options.pointId);
  if (!(await folder.isChecked(manifest.point_id))) {
    await assertRoom(folder, manifest, repository);
    if (!isPartial) await assertPieces(options, manifest, repository);
  }
  await folder.begin(manifest.point_id, !isPartial);
  const missing = await writeAll(options, manifest, repository);
  return { manifest, repositoryId: repository.id, missing };
}

async function writeAll(
  { folder, isPartial, onProgress }: RestoreOptions,
  manifest: Manifest,
  repository: Repository,
): Promise<string[]> {
  const totalBytes = totalOf(manifest);
  const missing: string[] = [];
  const running = new Set<Promise<void>>();
  let failure: unknown;
  let bytes = 0;
  const write = async ({ path, mode, size_bytes: sizeBytes, pieces }: Entry) => {
    try {
      if (!(await folder.has(path, sizeBytes))) {
        await repository.writeFile({ path: await folder.placeFor(path), mode }, pieces);
      }
    } catch (error) {
      if (!isPartial || !(error instanceof Damaged) || NEEDED.includes(path)) throw error;
      missing.push(`${path}: ${error.message}`);
    }
    bytes += sizeBytes;
    onProgress({ phase: 'writing', bytes, totalBytes });
  };
  for (const component of manifest.components) {
    const onDamaged = (damaged: Damaged) => {
      missing.push(`some of ${component.name}, whose list is damaged: ${damaged.message}`);
    };
    for await (const entry of entriesOf(repository, component, isPartial ? onDamaged : undefined)) {
      const written = write(entry)
        .catch((error: unknown) => {
          failure ??= error;
        })
        .finally(() => running.delete(written));
      running.add(written);
      if (running.size >= FILES_AT_ONCE) await Promise.race(running);
      if (failure !== undefined) break;
    }
  }
  await Promise.all(running);
  if (failure !== undefined) throw failure;
  return missing;
}

/** The first of these that lacks nothing; else the first, and so when that one cannot be read. */
async function newestWhole(repository: Repository, ids: readonly string[]): Promise<string | undefined> {
  for (const [at, id] of ids.entries()) {
    const found = await repository.getManifest(id).catch(() => undefined);
    if (found === undefined && at === 0) return id;
    if (found !== undefined && readManifest(found.bytes).gaps.length === 0) return id;
  }
  return ids[0];
}

/**
 * By its id, or `latest`: the newest that was not deleted and lacks nothing, else the newest. Throws an Error
 * that names the others.
 */
export async function findPoint(repository: Repository, wanted: string): Promise<Manifest> {
  const ids = await repository.points();
  const deleted = await repository.deleted();
  const left = ids.filter((id) => !deleted.includes(id)).reverse();
  const id = wanted === 'latest' ? await newestWhole(repository, left) : ids.find((one) => one === wanted);
  if (id === undefined) {
    const which = ids.length === 0 ? 'there is none' : `there are ${ids.join(', ')}`;
    const none =
      ids.length === 0 ? 'The repository has no recovery point' : `Every point was deleted: ${which}`;
    throw new Error(wanted === 'latest' ? none : `No point ${wanted}: ${which}`);
  }
  try {
    const found = await repository.getManifest(id);
    if (found !== undefined) return readManifest(found.bytes);
  } catch (error) {
    if (!(error instanceof Damaged)) throw error;
  }
  const others = ids.filter((one) => one !== id);
  const hint = others.length === 0 ? 'there is no other' : `name another with --point: ${others.join(', ')}`;
  throw new Error(`${manifestFile(id)} is missing or damaged, and nothing can be had of this point; ${hint}`);
}

/** Blocks of holes take no room. */
async function assertRoom(
  folder: RestoreFolder,
  { components }: Manifest,
  repository: Repository,
): Promise<void> {
  let needed = 0;
  for (const component of components) {
    for await (const { path, size_bytes: size, pieces } of entriesOf(repository, component, () => {})) {
      if (await folder.has(path, size)) continue;
      const holes = pieces.filter((piece) => piece === repository.holeName).length;
      needed += Math.max(0, size - holes * HOLE.length);
    }
  }
  const free = await folder.freeBytes();
  if (needed <= free) return;
  throw new Error(
    `The point needs ${inMib(needed)} MiB and there are ${inMib(free)}: make room, or name another disk`,
  );
}

/** Nothing is written when something is missing: half a cloud is not asked for. */
async function assertPieces(
  { onProgress }: RestoreOptions,
  { point_id: pointId }: Manifest,
  repository: Repository,
): Promise<void> {
  const { signal } = new AbortController();
  const { damage, damagedFiles } = await verifyPoint({
    repository,
    pointId,
    signal,
    isQuick: true,
    onProgress: (done) => onProgress({ phase: 'reading', ...done }),
  });
  if (damagedFiles === 0) return;
  const lines = damage.map(
    ({ file, problem, needed_by: path }: DamagedFile) => `${file} is ${problem}: ${path}`,
  );
  const more = damagedFiles > damage.length ? [`and ${damagedFiles - damage.length} more`] : [];
  const hint = 'Nothing was written. --partial restores the rest and lists what is missing';
  throw new Error([...lines, ...more, hint].join('\n'));
}

function totalOf({ components }: Manifest): number {
  return components.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
}

function inMib(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}
