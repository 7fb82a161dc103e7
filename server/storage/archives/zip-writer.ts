/**
 * Writes a zip as a stream (APPNOTE 6.3): stored bytes, checksums after them, the central directory at the
 * end; ZIP64 beyond 4 GiB or 65,534 files. Every reader that uses the central directory accepts it.
 */
import { crc32 } from 'node:zlib';

type Sink = (chunk: Uint8Array) => Promise<void> | undefined;

interface ZipFile {
  /** With `/` between folders. */
  readonly name: string;
  /** ms since 1970. */
  readonly modifiedAt: number;
  /** Expected size; null: unknown. Fewer bytes are allowed; more than 4 GiB need an expected size or null. */
  readonly sizeBytes: number | null;
  readonly read: (sink: (chunk: Uint8Array) => Promise<void>) => Promise<void>;
}

/** Stores the central directory until all files are written. */
export interface ZipDirectory {
  append(bytes: Uint8Array): Promise<void>;
  bytes(): AsyncIterable<Uint8Array>;
}

/** Flags: sizes follow the data, and names are UTF-8. */
const FLAGS = 0x0808;
const VERSION = 20;
const VERSION_ZIP64 = 45;
const MOST = 0xffff_ffff;
const MOST_FILES = 0xffff;
const BLOCK_BYTES = 64 * 1024;
/** Maximum size of a file's directory entry, without its name, bytes. */
const ENTRY_BYTES = 46 + 28;

/** Upper bound of ZipWriter.directoryBytes for this many files. */
export function maxDirectoryBytes(files: number, nameBytes: number): number {
  return files * ENTRY_BYTES + nameBytes + BLOCK_BYTES;
}

export class ZipWriter {
  readonly #sink: Sink;
  readonly #memory = new DirectoryBlocks();
  readonly #directory: ZipDirectory;
  #files = 0;
  #at = 0;

  /** `directory`: default, in memory. */
  constructor(sink: Sink, directory?: ZipDirectory) {
    this.#sink = sink;
    this.#directory = directory ?? this.#memory;
  }

  /** Memory used by the directory, bytes. */
  get directoryBytes(): number {
    return this.#memory.sizeBytes;
  }

  /**
   * Writes one file; the previous one must be complete. Rethrows errors of `read`; if nothing was
   * written by then, the zip does not contain the file and can continue.
   */
  async add(file: ZipFile): Promise<void> {
    const offset = this.#at;
    const name = Buffer.from(file.name);
    const isLarge = file.sizeBytes === null || file.sizeBytes >= MOST;
    const common = commonFields(file.modifiedAt, isLarge);
    // Its presence means that the sizes after the data have eight bytes each.
    const extra = isLarge ? extraOf([0, 0]) : Buffer.alloc(0);
    const sizes = isLarge ? u32(0, MOST, MOST) : u32(0, 0, 0);
    let isBegun = false;
    const begin = () => {
      isBegun = true;
      return this.#write(u32(0x04034b50), common, sizes, u16(name.length, extra.length), name, extra);
    };
    let [checksum, size] = [0, 0];
    await file.read(async (chunk) => {
      if (!isBegun) await begin();
      checksum = crc32(chunk, checksum);
      size += chunk.length;
      this.#at += chunk.length;
      await this.#sink(chunk);
    });
    if (!isBegun) await begin();
    await this.#write(u32(0x08074b50, checksum), isLarge ? u64(size, size) : u32(size, size));
    this.#files++;
    await this.#directory.append(directoryEntry({ name, common, checksum, size, offset }));
  }

  /** Writes the directory, without which the zip is invalid. */
  async end(): Promise<void> {
    const start = this.#at;
    for await (const block of this.#directory.bytes()) await this.#write(block);
    const size = this.#at - start;
    const count = this.#files;
    if (count >= MOST_FILES || this.#at >= MOST) {
      const offset = this.#at;
      const versions = u16(VERSION_ZIP64, VERSION_ZIP64);
      await this.#write(u32(0x06064b50), u64(44), versions, u32(0, 0), u64(count, count, size, start));
      await this.#write(u32(0x07064b50, 0), u64(offset), u32(1));
    }
    const files = Math.min(count, MOST_FILES);
    const ends = u32(Math.min(size, MOST), Math.min(start, MOST));
    await this.#write(u32(0x06054b50), u16(0, 0, files, files), ends, u16(0));
  }

  async #write(...parts: readonly Uint8Array[]): Promise<void> {
    const bytes = Buffer.concat(parts);
    this.#at += bytes.length;
    await this.#sink(bytes);
  }
}

/** In blocks: one buffer per file would take much more memory than its contents. */
class DirectoryBlocks implements ZipDirectory {
  readonly #blocks: Buffer[] = [];
  #used = 0;

  get sizeBytes(): number {
    return this.#blocks.length * BLOCK_BYTES;
  }

  async append(entry: Buffer): Promise<void> {
    for (let rest = entry; rest.length > 0; ) {
      if (this.#used === BLOCK_BYTES || this.#blocks.length === 0) {
        this.#blocks.push(Buffer.allocUnsafeSlow(BLOCK_BYTES));
        this.#used = 0;
      }
      const copied = rest.copy(this.#blocks.at(-1) as Buffer, this.#used);
      this.#used += copied;
      rest = rest.subarray(copied);
    }
  }

  async *bytes(): AsyncGenerator<Uint8Array> {
    const last = this.#blocks.length - 1;
    for (const [index, block] of this.#blocks.entries())
      yield index < last ? block : block.subarray(0, this.#used);
  }
}

/** Fields that a file's local header and its directory entry share. */
function commonFields(modifiedAt: number, isLarge: boolean): Buffer {
  const at = new Date(modifiedAt);
  // Zip times begin in 1980 and have a resolution of two seconds.
  const year = Math.max(at.getUTCFullYear(), 1980) - 1980;
  const date = (year << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate();
  const time = (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | (at.getUTCSeconds() >> 1);
  return u16(isLarge ? VERSION_ZIP64 : VERSION, FLAGS, 0, time, date);
}

interface Entry {
  readonly name: Buffer;
  readonly common: Buffer;
  readonly checksum: number;
  readonly size: number;
  readonly offset: number;
}

function directoryEntry({ name, common, checksum, size, offset }: Entry): Buffer {
  const isLarge = size >= MOST || offset >= MOST;
  const extra = isLarge ? extraOf([size, size, offset]) : Buffer.alloc(0);
  const [shown, shownOffset] = isLarge ? [MOST, MOST] : [size, offset];
  return Buffer.concat([
    u32(0x02014b50),
    u16(VERSION_ZIP64),
    common,
    u32(checksum, shown, shown),
    u16(name.length, extra.length, 0, 0, 0),
    u32(0, shownOffset),
    name,
    extra,
  ]);
}

const extraOf = (sizes: readonly number[]) => Buffer.concat([u16(1, sizes.length * 8), u64(...sizes)]);

function u16(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2);
  for (const [index, value] of values.entries()) bytes.writeUInt16LE(value, index * 2);
  return bytes;
}

function u32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [index, value] of values.entries()) bytes.writeUInt32LE(value >>> 0, index * 4);
  return bytes;
}

function u64(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 8);
  for (const [index, value] of values.entries()) bytes.writeBigUInt64LE(BigInt(value), index * 8);
  return bytes;
}
