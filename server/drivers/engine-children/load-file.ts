/** Takes in a file that a tenant sends; a child of its own examines it before it is used. */
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type EngineDatabase, LoadFailed } from '../../databases/engine.ts';
import { hostDiskFull } from '../../platform/errors.ts';

/** What tenants send. */
export interface LoadedKind {
  /** Its name in the folder. */
  readonly file: string;
  /** With which each begins. */
  readonly header: Buffer;
  /** For people: why one that begins otherwise is refused. */
  readonly otherwise: string;
}

/** Writes it into the folder. Throws LoadFailed, `host_disk_full`. */
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
    if (size > limit) throw new LoadFailed(`the file is larger than the database may be (${limit} bytes)`);
    if (start.length < length) start = Buffer.concat([start, piece.subarray(0, length)]);
    if (start.length >= length) assertHeader(start, kind);
    yield piece;
  }
  assertHeader(start, kind);
}

function assertHeader(start: Buffer, { header, otherwise }: LoadedKind): void {
  if (!start.subarray(0, header.length).equals(header)) throw new LoadFailed(otherwise);
}
