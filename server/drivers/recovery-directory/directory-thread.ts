/** The thread that works on the pieces of a directory: sealed pieces as files, read and written at once. */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writevSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { workerData } from 'node:worker_threads';
import { isCode } from '../../platform/files.ts';
import { randomName } from '../../platform/ids.ts';
import { Damaged } from '../../recovery/repository/piece-box.ts';
import { pieceFile } from '../../recovery/repository/repository.ts';
import { UNFINISHED, unreadable } from '../recovery-pieces/file-errors.ts';
import type { PieceSetup, PieceStorage } from '../recovery-pieces/piece-storage.ts';
import { answerPieceJobs } from '../recovery-pieces/piece-work.ts';

class PieceFiles implements PieceStorage {
  // The file system gets one request at a time.
  readonly atOnce = 1;
  readonly readings = 1;
  readonly #location: string;

  constructor(location: string) {
    this.#location = location;
  }

  has(piece: string): boolean {
    return existsSync(this.#pathOf(piece));
  }

  put(piece: string, parts: readonly Buffer[]): number {
    return write(this.#pathOf(piece), parts);
  }

  get(piece: string): Buffer {
    try {
      return readFileSync(this.#pathOf(piece));
    } catch (error) {
      if (isCode(error, 'ENOENT')) throw new Damaged(`the piece ${piece} is missing`, 'missing');
      throw unreadable(pieceFile(piece), error) ?? error;
    }
  }

  renewLock(): void {}

  #pathOf(piece: string): string {
    return join(this.#location, pieceFile(piece));
  }
}

/** Whole or not at all; resolves with its length. */
function write(path: string, parts: readonly Buffer[]): number {
  const unfinished = `${path}.${randomName(8)}${UNFINISHED}`;
  try {
    const file = create(unfinished);
    let length = 0;
    try {
      for (let left: readonly Buffer[] = parts; left.length > 0; ) {
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

function behind(parts: readonly Buffer[], written: number): Buffer[] {
  let done = written;
  return parts.flatMap((part) => {
    const taken = Math.min(done, part.length);
    done -= taken;
    return taken === part.length ? [] : [part.subarray(taken)];
  });
}

const setup = workerData as PieceSetup & { readonly location: string };
answerPieceJobs(new PieceFiles(setup.location), setup);
