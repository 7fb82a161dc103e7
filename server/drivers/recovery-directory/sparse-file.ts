/** Writes a file that is there whole or not at all, here and now: for a thread of its own. */
import { closeSync, ftruncateSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { HOLE } from '../../recovery/chunks.ts';
import type { PlacedFile } from '../../recovery/target.ts';
import { UNFINISHED } from './file-errors.ts';

/** Disks are mostly holes, and stay so. */
export function writeSparse({ path, mode }: PlacedFile, pieces: Iterable<Uint8Array>): void {
  const unfinished = path + UNFINISHED;
  try {
    const file = openSync(unfinished, 'w', mode);
    try {
      writeAll(file, pieces);
    } finally {
      closeSync(file);
    }
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

function writeAll(file: number, pieces: Iterable<Uint8Array>): void {
  let at = 0;
  let isHole = false;
  for (const piece of pieces) {
    isHole = isZero(piece);
    for (let done = isHole ? piece.length : 0; done < piece.length; ) {
      done += writeSync(file, piece, done, piece.length - done, at + done);
    }
    at += piece.length;
  }
  if (isHole) ftruncateSync(file, at);
}

function isZero(bytes: Uint8Array): boolean {
  return bytes.length <= HOLE.length && HOLE.compare(bytes, 0, bytes.length, 0, bytes.length) === 0;
}
