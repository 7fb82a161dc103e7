/** Pieces as files of a directory, named, sealed, read and written here and now: for a thread of its own. */
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writevSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { release } from '../../platform/buffers.ts';
import { randomName } from '../../platform/ids.ts';
import { BLOCK_BYTES, HOLE } from '../../recovery/chunks.ts';
import { Damaged, PieceBox } from '../../recovery/piece-box.ts';
import { pieceFile } from '../../recovery/repository.ts';
import type { FilePart, KeptPart, KeptPiece, PlacedFile } from '../../recovery/target.ts';
import { isCode, UNFINISHED, unreadable } from './file-errors.ts';
import { writeSparse } from './sparse-file.ts';

/** Blocks of one job, which cannot be cancelled once started. */
const PART_BLOCKS = 4;

export interface PieceFilesDeps {
  readonly location: string;
  readonly key: Uint8Array;
  /** Pieces that are to be put anew. */
  readonly suspects: ReadonlySet<string>;
}

export class PieceFiles {
  readonly #deps: PieceFilesDeps;
  readonly #box: PieceBox;
  /** The name of a block of a hole. */
  readonly #hole: string;
  readonly #block = Buffer.allocUnsafeSlow(BLOCK_BYTES);

  constructor(deps: PieceFilesDeps) {
    this.#deps = deps;
    this.#box = new PieceBox(deps.key);
    this.#hole = this.#box.nameOf(HOLE);
  }

  keep(bytes: Uint8Array, isPacked: boolean): KeptPiece {
    const name = this.#box.nameOf(bytes);
    const path = this.#pathOf(name);
    if (!this.#deps.suspects.has(name) && existsSync(path)) return { name, addedBytes: 0 };
    const parts = this.#box.sealPiece(name, bytes, isPacked);
    const addedBytes = put(path, parts);
    for (const part of parts) release(part);
    return { name, addedBytes };
  }

  keepPart({ path, from }: FilePart, isPacked: boolean): KeptPart {
    const opened = attempt(() => openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW));
    if ('unreadable' in opened) return opened;
    const file = opened.result;
    try {
      const kept = { pieces: [] as string[], bytes: 0, addedBytes: 0, isEnd: false };
      while (!kept.isEnd && kept.pieces.length < PART_BLOCKS) {
        // Without an offset, reads continue at the position, as pipes require.
        const read = attempt(() => fill(this.#block, file, from === 0 ? null : from + kept.bytes));
        if ('unreadable' in read) return read;
        const length = read.result;
        kept.isEnd = length < BLOCK_BYTES;
        if (length === 0) break;
        const { name, addedBytes } = this.keep(this.#block.subarray(0, length), isPacked);
        kept.pieces.push(name);
        kept.bytes += length;
        kept.addedBytes += addedBytes;
      }
      return kept;
    } finally {
      closeSync(file);
    }
  }

  read(piece: string): Buffer {
    const sealed = this.#sealed(piece);
    const bytes = this.#box.openPiece(piece, sealed);
    release(sealed);
    return bytes;
  }

  writeFile(file: PlacedFile, pieces: readonly string[]): void {
    writeSparse(file, this.#joined(pieces));
  }

  check(piece: string, isQuick: boolean): void {
    const sealed = this.#sealed(piece);
    if (isQuick) this.#box.probePiece(piece, sealed);
    else this.#box.verifyPiece(piece, sealed);
    release(sealed);
  }

  /** Each buffer is valid until the next is requested. */
  *#joined(pieces: readonly string[]): Generator<Uint8Array> {
    for (const piece of pieces) {
      if (piece === this.#hole) {
        yield HOLE;
        continue;
      }
      const bytes = this.read(piece);
      yield bytes;
      release(bytes);
    }
  }

  #sealed(piece: string): Buffer {
    try {
      return readFileSync(this.#pathOf(piece));
    } catch (error) {
      if (isCode(error, 'ENOENT')) throw new Damaged(`the piece ${piece} is missing`, 'missing');
      throw unreadable(pieceFile(piece), error) ?? error;
    }
  }

  #pathOf(piece: string): string {
    return join(this.#deps.location, pieceFile(piece));
  }
}

/** Catches errors of the file being read, not of files being written. */
function attempt<T>(work: () => T): { readonly result: T } | { readonly unreadable: string | null } {
  try {
    return { result: work() };
  } catch (error) {
    return { unreadable: isCode(error, 'ENOENT') ? null : (error as Error).message };
  }
}

/** Less than the block is long: the file ends there. */
function fill(block: Buffer, file: number, from: number | null): number {
  for (let filled = 0; ; ) {
    const position = from === null ? null : from + filled;
    const read = readSync(file, block, filled, block.length - filled, position);
    filled += read;
    if (read === 0 || filled === block.length) return filled;
  }
}

/** Whole or not at all; resolves with its length. */
function put(path: string, parts: Buffer[]): number {
  const unfinished = `${path}.${randomName(8)}${UNFINISHED}`;
  try {
    const file = create(unfinished);
    let length = 0;
    try {
      for (let left = parts; left.length > 0; ) {
        const written = writevSync(file, left);
        length += written;
        left = behind(left, written);
      }
    } finally {
      closeSync(file);
    }
    renameSync(unfinished, path);
    return length;
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

/** Creates the folder and its parent when missing; not the target itself, which is then gone. */
function create(path: string): number {
  try {
    return openSync(path, 'wx', 0o600);
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
  }
  for (const folder of [dirname(dirname(path)), dirname(path)]) {
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      if (!isCode(error, 'EEXIST')) throw error;
    }
  }
  return openSync(path, 'wx', 0o600);
}

function behind(parts: Buffer[], written: number): Buffer[] {
  let done = written;
  return parts.flatMap((part) => {
    const taken = Math.min(done, part.length);
    done -= taken;
    return taken === part.length ? [] : [part.subarray(taken)];
  });
}
