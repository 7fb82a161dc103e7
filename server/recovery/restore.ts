/**
 * A whole cloud from a recovery point, on an empty directory. It needs the repository and its recovery key,
 * and nothing of the cloud that was lost.
 *
 * Everything is written into a folder beside the directory and moved to its place at the end, so that a cloud
 * is there whole or not at all; done again after a kill, it goes on where it was.
 */
import { entriesOf } from './entries.ts';
import { type Entry, type Manifest, readManifest } from './manifest.ts';
import { Damaged } from './piece-box.ts';
import { Repository, type RepositoryKeys } from './repository.ts';
import type { Target } from './target.ts';

/** The directory that is being made. */
export interface RestoreFolder {
  /** True when an earlier try wrote this file whole. */
  has(path: string, sizeBytes: number): Promise<boolean>;
  /** Whole or not at all. */
  write(entry: Entry, bytes: AsyncIterable<Uint8Array>): Promise<void>;
  /** All that was written is on disk. */
  sync(): Promise<void>;
}

export interface RestoreOptions {
  readonly target: Target;
  readonly recoveryKey: Uint8Array;
  /** `latest`: the newest one. */
  readonly pointId: string;
  readonly folder: (pointId: string) => Promise<RestoreFolder>;
  /** Goes on when pieces are missing or damaged, and names the files. */
  readonly isPartial: boolean;
  readonly onProgress: (done: { readonly bytes: number; readonly totalBytes: number }) => void;
}

export interface Restored {
  readonly manifest: Manifest;
  /** Files that could not be had. */
  readonly missing: readonly string[];
}

/** Throws an Error of one clear line, before anything is written when key, point or pieces are not right. */
export async function restoreFiles(options: RestoreOptions): Promise<Restored> {
  const { target, recoveryKey, folder: openFolder, isPartial, onProgress } = options;
  const keys: RepositoryKeys = await Repository.unlock(target, recoveryKey);
  const repository = await Repository.open(target, keys);
  const manifest = await findPoint(repository, options.pointId);
  if (!isPartial) await demandPieces(manifest, repository);
  const folder = await openFolder(manifest.point_id);
  const totalBytes = manifest.components.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  const missing: string[] = [];
  let bytes = 0;
  for (const component of manifest.components) {
    for await (const entry of entriesOf(repository, component)) {
      try {
        if (!(await folder.has(entry.path, entry.size_bytes))) {
          await folder.write(entry, repository.read(entry.pieces));
        }
      } catch (error) {
        if (!(isPartial && error instanceof Damaged)) throw error;
        missing.push(entry.path);
      }
      bytes += entry.size_bytes;
      onProgress({ bytes, totalBytes });
    }
  }
  await folder.sync();
  return { manifest, missing };
}

async function findPoint(repository: Repository, wanted: string): Promise<Manifest> {
  const ids = await repository.points();
  const manifests = wanted === 'latest' ? ids : ids.filter((id) => id === wanted);
  let newest: Manifest | undefined;
  for (const id of manifests) {
    const found = await repository.getManifest(id);
    const manifest = found && readManifest(found.bytes);
    if (manifest && (newest === undefined || manifest.cut_at >= newest.cut_at)) newest = manifest;
  }
  if (newest !== undefined) return newest;
  const which = ids.length === 0 ? 'there is none' : `there are ${ids.join(', ')}`;
  throw new Error(
    wanted === 'latest' ? 'The repository has no recovery point' : `No point ${wanted}: ${which}`,
  );
}

/** Nothing is written when something is missing: half a cloud is not asked for. */
async function demandPieces(manifest: Manifest, repository: Repository): Promise<void> {
  const missing: string[] = [];
  for (const component of manifest.components) {
    for await (const { path, pieces } of entriesOf(repository, component)) {
      for (const piece of pieces) {
        if (await repository.hasPiece(piece)) continue;
        missing.push(path);
        break;
      }
      if (missing.length >= 10) break;
    }
  }
  if (missing.length === 0) return;
  throw new Error(`Pieces of ${missing.join(', ')} are missing: --partial restores the rest and lists them`);
}
