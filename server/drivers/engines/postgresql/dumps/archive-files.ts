/** Archives of pg_dump in files: a folder (`-Fd`) in a tar archive, or `-Ft`, which is one. */
import { createReadStream, createWriteStream, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { LoadFailed } from '../../../../databases/engine.ts';
import { hostDiskFull } from '../../../../platform/errors.ts';
import { isCode } from '../../../../platform/files.ts';
import { type ArchiveEntry, ByteReader, type Packed } from './archive-entries.ts';
import { type ArchiveData, unpackedData } from './archive-sql.ts';

const BLOCK = 512;
const CONTENTS = 'toc.dat';
const ENDINGS: readonly (readonly [string, Packed])[] = [
  ['', 'none'],
  ['.gz', 'gzip'],
  ['.lz4', 'lz4'],
  ['.zst', 'zstd'],
];
/** A dump has one file per table. */
const MOST_FILES = 100_000;
const NAME = /^[\w.-]{1,100}$/;

/** Whether the bytes begin a tar archive (POSIX or GNU). */
export function isTar(head: Buffer): boolean {
  return head.length >= BLOCK && head.subarray(257, 262).toString('latin1') === 'ustar';
}

/** The unpacked files, in our folder until close(). */
export class UnpackedArchive implements ArchiveData {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Throws LoadFailed, `host_disk_full`. */
  static async of(pieces: AsyncIterable<Uint8Array>, folder: string): Promise<UnpackedArchive> {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const archive = new UnpackedArchive(folder);
    try {
      await archive.#unpack(new ByteReader(pieces));
      return archive;
    } catch (error) {
      archive.close();
      throw isCode(error, 'ENOSPC') ? hostDiskFull(error) : error;
    }
  }

  contents(): ByteReader {
    const path = join(this.#folder, CONTENTS);
    if (existsSync(path)) return new ByteReader(createReadStream(path));
    throw new LoadFailed(
      'The file is an archive of tar without a dump: toc.dat, which `pg_dump -Fd` and `-Ft` write, is missing',
    );
  }

  table({ file }: ArchiveEntry): AsyncIterable<Uint8Array> {
    return this.#read(file);
  }

  async *largeObjects({ id, file: named }: ArchiveEntry) {
    // `-Ft` does not name its list.
    const lists = [named, `blobs_${id}.toc`, 'blobs.toc'].filter((name) => name.endsWith('.toc'));
    const file = lists.find((name) => existsSync(join(this.#folder, name))) ?? named;
    let list = '';
    for await (const piece of this.#read(file)) list += Buffer.from(piece).toString('latin1');
    for (const line of list.split('\n').filter((text) => text !== '')) {
      const [, oid = '', name = ''] = /^(\d+) (\S+)$/.exec(line) ?? [];
      if (oid === '') throw new LoadFailed(`The list of large objects, ${file}, is damaged`);
      yield { oid, bytes: this.#read(name) };
    }
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async *#read(name: string): AsyncGenerator<Uint8Array> {
    const found = NAME.test(name)
      ? ENDINGS.find(([ending]) => existsSync(join(this.#folder, name + ending)))
      : undefined;
    if (found === undefined) throw new LoadFailed(`The dump is incomplete: its file ${name} is missing`);
    const [ending, packed] = found;
    yield* unpackedData(createReadStream(join(this.#folder, name + ending)), packed, createGunzip);
  }

  async #unpack(reader: ByteReader): Promise<void> {
    for (let files = 0; files < MOST_FILES; files++) {
      const head = await reader.bytes(BLOCK);
      if (head.every((byte) => byte === 0)) return;
      const size = sizeIn(head);
      const name =
        /^[^\0]*/
          .exec(head.toString('latin1', 0, 100))?.[0]
          .split('/')
          .at(-1) ?? '';
      const type = String.fromCharCode(head[156] ?? 0);
      const isFile = (type === '0' || type === '\0') && NAME.test(name) && name !== '.' && name !== '..';
      const content = bytesOf(reader, size);
      if (isFile) await pipeline(content, createWriteStream(join(this.#folder, name), { mode: 0o600 }));
      else for await (const _ of content);
      await reader.bytes((BLOCK - (size % BLOCK)) % BLOCK);
    }
    throw new LoadFailed(`The archive has more than ${MOST_FILES} files`);
  }
}

async function* bytesOf(reader: ByteReader, size: number): AsyncGenerator<Buffer> {
  for (let left = size; left > 0; ) {
    const piece = await reader.bytes(Math.min(left, 65_536));
    left -= piece.length;
    yield piece;
  }
}

/** In octal digits, or for large files in binary (GNU). */
function sizeIn(head: Buffer): number {
  if (((head[124] ?? 0) & 0x80) !== 0) return head.readUIntBE(130, 6);
  const size = Number.parseInt(
    head
      .toString('latin1', 124, 136)
      .replace(/[\0 ]+$/, '')
      .trim() || '0',
    8,
  );
  if (Number.isNaN(size)) throw new LoadFailed('The tar archive is damaged');
  return size;
}
