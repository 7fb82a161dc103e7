/** Writes a file completely or not at all, blocking: for a separate thread. */
import { closeSync, ftruncateSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { HOLE } from '../../recovery/repository/chunks.ts';
import type { PlacedFile } from '../../recovery/repository/target.ts';
import { UNFINISHED } from './file-errors.ts';

/** Disks consist mostly of holes, which are kept. */
export async function writeSparse(
  { path, mode }: PlacedFile,
  pieces: AsyncIterable<Uint8Array>,
): Promise<void> {
  const unfinished = path + UNFINISHED;
  try {
    const file = openSync(unfinished, 'w', mode);
    try {
      await writeAll(file, pieces);
    } finally {
      closeSync(file);
    }
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

async function writeAll(file: number, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  let at = 0;
  let isHole = false;
  for await (const piece of pieces) {
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
