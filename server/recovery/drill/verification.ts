/** Reads every byte of a recovery point, and lists each damaged file of the repository. */
import { AppError } from '../../platform/errors.ts';
import { entriesOf, type Manifest, readManifest } from '../points/manifest.ts';
import { Damaged, type Problem } from '../repository/piece-box.ts';
import { manifestFile, pieceFile, type Repository } from '../repository/repository.ts';

export interface DamagedFile {
  /** Path in the repository. */
  readonly file: string;
  readonly problem: Problem;
  /** First file of the cloud that depends on it. */
  readonly needed_by: string;
}

export interface Verdict {
  /** The first damaged files. */
  readonly damage: readonly DamagedFile[];
  readonly damagedFiles: number;
}

export interface VerifyOptions {
  readonly repository: Repository;
  readonly pointId: string;
  readonly signal: AbortSignal;
  /** Checks only the seals of pieces: faster, and equally safe unless a piece was sealed wrongly. */
  readonly isQuick?: boolean;
  /** Pieces already found intact; those of this point are added. */
  readonly sound?: PieceSet;
  /** Reports progress in bytes of the cloud's files. */
  readonly onProgress: (done: { readonly bytes: number; readonly totalBytes: number }) => void;
}

/** Maximum damaged files listed; others are counted. */
const NAMED = 1000;
const AT_ONCE = 8;

/** Throws if the whole target is missing, because then nothing is known about the point. */
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
    await found.add({ file, problem: 'missing', needed_by: 'the whole point' });
  } catch (error) {
    if (!(error instanceof Damaged)) throw error;
    await found.add({ file, problem: error.problem, needed_by: 'the whole point' });
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
      const needed_by = `the index of ${component.name}`;
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
    // On an unmounted disk every file is missing.
    if (file.problem !== 'altered' && !(await this.#repository.isThere())) {
      throw new AppError('target_unavailable', 'The recovery target is no longer available');
    }
    this.damagedFiles++;
    if (this.damage.length < NAMED) this.damage.push(file);
  }
}

/**
 * A set of piece names, possibly millions: half of each name is kept, which is enough to distinguish them.
 */
export class PieceSet {
  readonly #names = new Set<string>();

  /** False if it was in the set already. */
  add(piece: string): boolean {
    const before = this.#names.size;
    this.#names.add(short(piece));
    return this.#names.size > before;
  }

  has(piece: string): boolean {
    return this.#names.has(short(piece));
  }

  /** False if it was not in the set. */
  delete(piece: string): boolean {
    return this.#names.delete(short(piece));
  }

  get size(): number {
    return this.#names.size;
  }
}

/** 16 bytes as a separate string: a substring would keep all hex digits in memory. */
function short(piece: string): string {
  return Buffer.from(piece, 'hex').toString('latin1', 0, 16);
}
