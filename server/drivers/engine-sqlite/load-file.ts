/** Takes in a file that a tenant sends, and lets a child of its own examine it before it is used. */
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type EngineDatabase, LoadFailed } from '../../databases/engine.ts';
import { AppError } from '../../errors.ts';
import { FILE } from './children.ts';

/** With which every SQLite file begins. */
const HEADER = Buffer.from('SQLite format 3\0');

/** Writes it into the folder. Throws LoadFailed, `out_of_space`. */
export async function receiveFile(folder: string, from: Readable, database: EngineDatabase): Promise<void> {
  try {
    await pipeline(
      from,
      (pieces) => checked(pieces, database.sizeLimitBytes),
      createWriteStream(join(folder, FILE), { mode: 0o600, flush: true }),
    );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    throw new AppError('out_of_space', 'The disk of this cloud is full', { cause: error });
  }
}

async function* checked(pieces: AsyncIterable<Buffer>, limit: number): AsyncGenerator<Buffer> {
  let start = Buffer.alloc(0);
  let size = 0;
  for await (const piece of pieces) {
    size += piece.length;
    if (size > limit) throw new LoadFailed(`the file is larger than the database may be (${limit} bytes)`);
    if (start.length < HEADER.length) start = Buffer.concat([start, piece.subarray(0, HEADER.length)]);
    if (start.length >= HEADER.length) requireHeader(start);
    yield piece;
  }
  requireHeader(start);
}

function requireHeader(start: Buffer): void {
  if (start.subarray(0, HEADER.length).equals(HEADER)) return;
  throw new LoadFailed('the file is no SQLite database: send the file itself, not SQL text or an archive');
}
