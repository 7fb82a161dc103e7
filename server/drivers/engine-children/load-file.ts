/** Receives a file uploaded by a tenant; a child of its own checks it before use. */
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type EngineDatabase, LoadFailed } from '../../databases/engine.ts';
import { hostDiskFull } from '../../platform/errors.ts';

/** The file format that tenants upload. */
export interface LoadedKind {
  /** File name in the folder. */
  readonly file: string;
  /** Header of every file. */
  readonly header: Buffer;
  /** For people: why a file with another header is refused. */
  readonly otherwise: string;
}

/** Writes the file into the folder. Throws LoadFailed, `host_disk_full`. */
export async function receiveFile(
  from: Readable,
  {
    folder,
    kind,
    sizeLimitBytes,
  }: { folder: string; kind: LoadedKind } & Pick<EngineDatabase, 'sizeLimitBytes'>,
): Promise<void> {
  try {
    await pipeline(
      from,
      (pieces) => checked(pieces, kind, sizeLimitBytes),
      createWriteStream(join(folder, kind.file), { mode: 0o600, flush: true }),
    );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    throw hostDiskFull(error);
  }
}

async function* checked(
  pieces: AsyncIterable<Buffer>,
  kind: LoadedKind,
  limit: number,
): AsyncGenerator<Buffer> {
  let start = Buffer.alloc(0);
  let size = 0;
  const { length } = kind.header;
  for await (const piece of pieces) {
    size += piece.length;
    if (size > limit)
      throw new LoadFailed(`the file exceeds the size limit of the database (${limit} bytes)`);
    if (start.length < length) start = Buffer.concat([start, piece.subarray(0, length)]);
    if (start.length >= length) assertHeader(start, kind);
    yield piece;
  }
  assertHeader(start, kind);
}

function assertHeader(start: Buffer, { header, otherwise }: LoadedKind): void {
  if (!start.subarray(0, header.length).equals(header)) throw new LoadFailed(otherwise);
}
