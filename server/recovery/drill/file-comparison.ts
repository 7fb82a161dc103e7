/** Compares a restored file with its pieces in a recovery point. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { Entry } from '../points/manifest.ts';
import { HOLE } from '../repository/chunks.ts';
import type { Repository } from '../repository/repository.ts';

/** Minimum number of hole blocks for which it pays to query the file's holes. */
const MANY_HOLES = 64;

export interface Extent {
  readonly start: number;
  readonly length: number;
}

/** The holes of an open file, in order; undefined if the system cannot list them: then they are read. */
export type HolesOf = (fd: number) => Promise<readonly Extent[] | undefined>;

export interface ComparedFile {
  readonly repository: Repository;
  readonly path: string;
  readonly holesOf: HolesOf;
}

/** null: equal. Throws Damaged if the recovery point cannot be read. */
export async function differenceOf(
  entry: Entry,
  { repository, path, holesOf }: ComparedFile,
): Promise<string | null> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? 'is missing' : `cannot be read (${code})`;
  }
  try {
    const { size } = await file.stat();
    if (size !== entry.size_bytes) return `has ${size} bytes, but ${entry.size_bytes} in the point`;
    const isHole = (piece: string) => piece === repository.holeName;
    const found = entry.pieces.filter(isHole).length >= MANY_HOLES ? await holesOf(file.fd) : undefined;
    const holes = found && new Holes(found);
    const own = new OwnBytes(file);
    let from = 0;
    for (const piece of entry.pieces) {
      if (isHole(piece) && holes?.cover(from, from + HOLE.length) === true) {
        from += HOLE.length;
        continue;
      }
      for await (const bytes of isHole(piece) ? [HOLE] : repository.read([piece])) {
        const at = await own.differAt(bytes, from);
        if (at !== undefined) return `differs from byte ${from + at} on`;
        from += bytes.length;
      }
    }
    return null;
  } finally {
    await file.close();
  }
}

/** Reads a file sequentially with one buffer. */
class OwnBytes {
  readonly #file: FileHandle;
  #buffer: Buffer = Buffer.alloc(0);

  constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Offset of the first byte that differs from the file; undefined: none. */
  async differAt(bytes: Buffer, from: number): Promise<number | undefined> {
    if (this.#buffer.length < bytes.length) this.#buffer = Buffer.allocUnsafe(bytes.length);
    const { bytesRead } = await this.#file.read(this.#buffer, 0, bytes.length, from);
    const own = this.#buffer.subarray(0, bytesRead);
    if (own.equals(bytes)) return undefined;
    const at = own.findIndex((byte, i) => byte !== bytes[i]);
    return at < 0 ? bytesRead : at;
  }
}

/** The holes of a file, for queries in order. */
class Holes {
  readonly #extents: readonly Extent[];
  #at = 0;

  constructor(extents: readonly Extent[]) {
    this.#extents = extents;
  }

  /** Whether one range covers `start` to `end`. */
  cover(start: number, end: number): boolean {
    while (endOf(this.#extents[this.#at]) <= start) this.#at++;
    const extent = this.#extents[this.#at];
    return extent !== undefined && extent.start <= start && endOf(extent) >= end;
  }
}

function endOf(extent: Extent | undefined): number {
  return extent === undefined ? Number.POSITIVE_INFINITY : extent.start + extent.length;
}
