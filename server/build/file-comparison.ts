/** Compares a restored file with its pieces in a recovery point. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { mapOf } from '../drivers/qemu/disk-map.ts';
import { QemuPrograms } from '../drivers/qemu/program.ts';
import type { Entry } from '../recovery/points/manifest.ts';
import { HOLE } from '../recovery/repository/chunks.ts';
import type { Repository } from '../recovery/repository/repository.ts';

/** Blocks of holes from which on it pays to find out where the holes of the file are. */
const MANY_HOLES = 64;

/** null: they are the same. Throws Damaged when the point cannot be read. */
export async function differenceOf(
  repository: Repository,
  path: string,
  entry: Entry,
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
    const holes = entry.pieces.filter(isHole).length >= MANY_HOLES ? await Holes.of(file) : undefined;
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

/** Reads a file in order, with one buffer. */
class OwnBytes {
  readonly #file: FileHandle;
  #buffer: Buffer = Buffer.alloc(0);

  constructor(file: FileHandle) {
    this.#file = file;
  }

  /** The first of these bytes that the file does not have there, if any. */
  async differAt(bytes: Buffer, from: number): Promise<number | undefined> {
    if (this.#buffer.length < bytes.length) this.#buffer = Buffer.allocUnsafe(bytes.length);
    const { bytesRead } = await this.#file.read(this.#buffer, 0, bytes.length, from);
    const own = this.#buffer.subarray(0, bytesRead);
    if (own.equals(bytes)) return undefined;
    const at = own.findIndex((byte, i) => byte !== bytes[i]);
    return at < 0 ? bytesRead : at;
  }
}

interface Hole {
  readonly start: number;
  readonly end: number;
}

/** The holes of a file, asked for in order. */
class Holes {
  readonly #extents: readonly Hole[];
  #at = 0;

  private constructor(extents: readonly Hole[]) {
    this.#extents = extents;
  }

  /** Undefined where nothing can find them: then they are read. */
  static async of({ fd }: FileHandle): Promise<Holes | undefined> {
    const qemuImg = await new QemuPrograms().image();
    if (qemuImg === null) return undefined;
    const map = await mapOf(qemuImg, { fd, format: 'raw', uid: null }).catch(() => []);
    const zeros = map.filter(({ zero }) => zero);
    return new Holes(zeros.map(({ start, length }) => ({ start, end: start + length })));
  }

  /** Whether one of them has all bytes from `start` to `end`. */
  cover(start: number, end: number): boolean {
    while ((this.#extents[this.#at]?.end ?? Number.POSITIVE_INFINITY) <= start) this.#at++;
    const extent = this.#extents[this.#at];
    return extent !== undefined && extent.start <= start && extent.end >= end;
  }
}
