/** Reads every byte of a recovery point, and names each file of the repository that is not as it was put. */
import { AppError } from '../platform/errors.ts';
import { entriesOf } from './entries.ts';
import { type Manifest, readManifest } from './manifest.ts';
import { Damaged, type Problem } from './piece-box.ts';
import { PieceSet } from './piece-set.ts';
import { manifestFile, pieceFile, type Repository } from './repository.ts';

export interface DamagedFile {
  /** In the repository. */
  readonly file: string;
  readonly problem: Problem;
  /** The first file of the cloud that cannot be had without it. */
  readonly needed_by: string;
}

export interface Verdict {
  /** The first of them. */
  readonly damage: readonly DamagedFile[];
  readonly damagedFiles: number;
}

export interface VerifyOptions {
  readonly repository: Repository;
  readonly pointId: string;
  readonly signal: AbortSignal;
  /** What the seals of pieces say is enough: some sooner, and as sure unless whoever sealed them erred. */
  readonly isQuick?: boolean;
  /** Pieces that were read before and are right; those of this point are added. */
  readonly sound?: PieceSet;
  /** Told of files of the cloud whose pieces have been seen to. */
  readonly onProgress: (done: { readonly bytes: number; readonly totalBytes: number }) => void;
}

/** As many are named; beyond, they are counted. */
const NAMED = 1000;
const AT_ONCE = 8;

/** Throws when the whole place is gone: then nothing is known of the point. */
export async function verifyPoint(options: VerifyOptions): Promise<Verdict> {
  const found = new Findings(options.repository);
  const manifest = await manifestOf(options, found);
  if (manifest !== undefined) await verifyPieces(options, manifest, found);
  return found;
}

async function manifestOf(
  { repository, pointId }: VerifyOptions,
  found: Findings,
): Promise<Manifest | undefined> {
  const file = manifestFile(pointId);
  try {
    const there = await repository.getManifest(pointId);
    if (there !== undefined) return readManifest(there.bytes);
    await found.add({ file, problem: 'missing', needed_by: 'all of it' });
  } catch (error) {
    if (!(error instanceof Damaged)) throw error;
    await found.add({ file, problem: error.problem, needed_by: 'all of it' });
  }
  return undefined;
}

async function verifyPieces(
  { repository, signal, isQuick, onProgress, sound = new PieceSet() }: VerifyOptions,
  manifest: Manifest,
  found: Findings,
): Promise<void> {
  const totalBytes = manifest.components.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  const seen = new PieceSet();
  const running = new Set<Promise<void>>();
  let failure: unknown;
  let bytes = 0;
  const begin = (work: Promise<void>) => {
    const ended = work
      .catch((error: unknown) => {
        failure ??= error;
      })
      .finally(() => running.delete(ended));
    running.add(ended);
  };
  const check = async (piece: string, neededBy: string) => {
    const damaged = await repository.check(piece, isQuick);
    if (damaged) await found.add({ file: pieceFile(piece), problem: damaged.problem, needed_by: neededBy });
    else sound.add(piece);
  };
  for (const component of manifest.components) {
    const onDamaged = ({ problem }: Damaged, piece: string) => {
      const needed_by = `the list of what is in ${component.name}`;
      if (seen.add(piece)) begin(found.add({ file: pieceFile(piece), problem, needed_by }));
    };
    for await (const { path, size_bytes, pieces } of entriesOf(repository, component, onDamaged)) {
      for (const piece of pieces) {
        if (!seen.add(piece) || sound.has(piece)) continue;
        signal.throwIfAborted();
        begin(check(piece, path));
        if (running.size >= AT_ONCE) await Promise.race(running);
        if (failure !== undefined) throw failure;
      }
      bytes += size_bytes;
      onProgress({ bytes, totalBytes });
    }
  }
  await Promise.all(running);
  if (failure !== undefined) throw failure;
}

class Findings implements Verdict {
  readonly damage: DamagedFile[] = [];
  damagedFiles = 0;
  readonly #repository: Repository;

  constructor(repository: Repository) {
    this.#repository = repository;
  }

  async add(file: DamagedFile): Promise<void> {
    // Every file of a disk that is not mounted any more is missing.
    if (file.problem !== 'altered' && !(await this.#repository.isThere())) {
      throw new AppError('target_unavailable', 'The place for recovery points is gone');
    }
    this.damagedFiles++;
    if (this.damage.length < NAMED) this.damage.push(file);
  }
}
