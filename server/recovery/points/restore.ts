/**
 * Restores a whole cloud from a recovery point into an empty directory. Needs only the repository and its
 * recovery key, nothing of the lost cloud.
 *
 * Every piece is read before anything is written. Then all files are written to a separate folder and moved
 * into place at the end, so that the cloud is restored completely or not at all. A restore repeated after a
 * kill resumes.
 */

import { type DamagedFile, verifyPoint } from '../drill/verification.ts';
import { HOLE } from '../repository/chunks.ts';
import { Damaged } from '../repository/piece-box.ts';
import { manifestFile, type Repository } from '../repository/repository.ts';
import { type Entry, entriesOf, type Manifest, readManifest } from './manifest.ts';

/** The directory being restored. */
export interface RestoreFolder {
  /** Free space, bytes. */
  freeBytes(): Promise<number>;
  /** True if an earlier attempt found all pieces intact and began writing. */
  isChecked(pointId: string): Promise<boolean>;
  /** Marks the restore as begun. Throws if a restore of another point is in progress. */
  begin(pointId: string, isChecked: boolean): Promise<void>;
  /** True when an earlier attempt wrote this file completely. */
  has(path: string, sizeBytes: number): Promise<boolean>;
  /** Path to write the file to; its folder exists then. Throws when the path leaves the directory. */
  preparePath(path: string): Promise<string>;
  /** Syncs everything that was written. */
  sync(): Promise<void>;
}

export interface RestoreOptions extends WriteOptions {
  /** `latest`: the newest point that is complete, see findPoint(). */
  readonly pointId: string;
  /** Called before anything is read. */
  readonly onPoint: (found: FoundPoint) => void;
}

export interface FoundPoint {
  readonly manifest: Manifest;
  /** Ids of newer points that `latest` skips because they have gaps or cannot be read. */
  readonly passedOver: readonly string[];
}

interface WriteOptions {
  readonly repository: Repository;
  readonly folder: RestoreFolder;
  /** Continues with missing or damaged pieces, and lists the files. */
  readonly isPartial: boolean;
  readonly onProgress: (done: RestoreProgress) => void;
  /** Chooses files; default: all of the point. */
  readonly takes?: (entry: Entry, component: string) => boolean;
}

export interface RestoreProgress {
  /** Pieces are read first. */
  readonly phase: 'reading' | 'writing';
  readonly bytes: number;
  readonly totalBytes: number;
}

export interface Restored {
  readonly manifest: Manifest;
  /** Files that could not be restored, with the reason. */
  readonly missing: readonly string[];
}

/** A cloud cannot start without these files. */
const NEEDED = ['master.key', 'metadata.db'];
const FILES_AT_ONCE = 4;

/**
 * Throws an Error before anything is written if the key, the point, the pieces or the space are insufficient.
 */
export async function restoreFiles(options: RestoreOptions): Promise<Restored> {
  const { repository, folder, isPartial } = options;
  const found = await findPoint(repository, options.pointId);
  options.onPoint(found);
  const { manifest } = found;
  if (!(await folder.isChecked(manifest.point_id))) {
    await assertSpace(options, manifest);
    if (!isPartial) await assertPieces(options, manifest);
  }
  await folder.begin(manifest.point_id, !isPartial);
  const missing = await writeFiles(options, manifest);
  return { manifest, missing };
}

/** Resolves with the files that could not be written, which only a partial restore allows. */
export async function writeFiles(
  { repository, folder, isPartial, onProgress, takes = () => true }: WriteOptions,
  manifest: Manifest,
): Promise<string[]> {
  const totalBytes = totalOf(manifest);
  const missing: string[] = [];
  const running = new Set<Promise<void>>();
  let failure: unknown;
  let bytes = 0;
  const write = async ({ path, mode, size_bytes: sizeBytes, pieces }: Entry) => {
    try {
      if (!(await folder.has(path, sizeBytes))) {
        await repository.writeFile({ path: await folder.preparePath(path), mode }, pieces);
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
      missing.push(`some files of ${component.name}, whose index is damaged: ${damaged.message}`);
    };
    for await (const entry of entriesOf(repository, component, isPartial ? onDamaged : undefined)) {
      if (!takes(entry, component.name)) continue;
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

/** The first point without gaps; otherwise, or if it cannot be read, the first. */
async function newestWhole(repository: Repository, ids: readonly string[]): Promise<string | undefined> {
  for (const [at, id] of ids.entries()) {
    const found = await repository.getManifest(id).catch(() => undefined);
    if (found === undefined && at === 0) return id;
    if (found !== undefined && readManifest(found.bytes).gaps.length === 0) return id;
  }
  return ids[0];
}

/**
 * Finds a point by id, or `latest`: the newest point that is not deleted and has no gaps, else the
 * newest. Throws an Error that lists the others.
 */
export async function findPoint(repository: Repository, wanted: string): Promise<FoundPoint> {
  const ids = await repository.points();
  const deleted = await repository.deleted();
  const left = ids.filter((id) => !deleted.includes(id)).reverse();
  const id = wanted === 'latest' ? await newestWhole(repository, left) : ids.find((one) => one === wanted);
  if (id === undefined) {
    const which = ids.length === 0 ? 'there are none' : `there are ${ids.join(', ')}`;
    const none =
      ids.length === 0 ? 'The repository has no recovery point' : `Every point is deleted: ${which}`;
    throw new Error(wanted === 'latest' ? none : `No point ${wanted}: ${which}`);
  }
  try {
    const found = await repository.getManifest(id);
    if (found !== undefined) {
      const passedOver = wanted === 'latest' ? left.slice(0, left.indexOf(id)) : [];
      return { manifest: readManifest(found.bytes), passedOver };
    }
  } catch (error) {
    if (!(error instanceof Damaged)) throw error;
  }
  const others = ids.filter((one) => one !== id);
  const hint =
    others.length === 0 ? 'there are no others' : `pass another one with --point: ${others.join(', ')}`;
  throw new Error(
    `${manifestFile(id)} is missing or damaged, so nothing of this point can be restored; ${hint}`,
  );
}

/** Space of a file on disk, bytes: hole blocks take none. */
export function spaceOf({ holeName }: Repository, { size_bytes: size, pieces }: Entry): number {
  const holes = pieces.filter((piece) => piece === holeName).length;
  return Math.max(0, size - holes * HOLE.length);
}

async function assertSpace({ folder, repository }: WriteOptions, { components }: Manifest): Promise<void> {
  let needed = 0;
  for (const component of components) {
    for await (const entry of entriesOf(repository, component, () => {})) {
      if (!(await folder.has(entry.path, entry.size_bytes))) needed += spaceOf(repository, entry);
    }
  }
  const free = await folder.freeBytes();
  if (needed <= free) return;
  throw new Error(
    `The point needs ${inMib(needed)} MiB, but only ${inMib(free)} MiB are free: free space, or use another disk`,
  );
}

/** Writes nothing when data is missing, because an incomplete cloud was not requested. */
async function assertPieces(
  { repository, onProgress }: WriteOptions,
  { point_id: pointId }: Manifest,
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
  const hint = 'Nothing was written. --partial restores the rest and lists the missing files';
  throw new Error([...lines, ...more, hint].join('\n'));
}

function totalOf({ components }: Manifest): number {
  return components.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
}

function inMib(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}
