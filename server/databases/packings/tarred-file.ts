/** The only file of a tar archive, read as it comes: `tar czf backup.tar.gz dump.sql`. */
import { LoadFailed } from '../engine.ts';
import { ExactReader } from './exact-reader.ts';

const BLOCK = 512;
/** Kinds of entries that are files; others are folders, links and notes about the next entry. */
const FILE = new Set(['0', '\0', '7']);
/** Limits for skipped entries, which the size limit of the database does not include. */
const MOST_PASSED_OVER = 1000;
const MOST_PASSED_OVER_BYTES = 16 * 2 ** 20;
/** Files of `pg_dump -Fd` and `-Ft`, which belong together. */
const OF_PG_DUMP = /^(?:toc\.dat|restore\.sql|\d+\.dat|blobs?(?:_\d+)?\.(?:toc|dat))(?:\.gz|\.lz4|\.zst)?$/;

/** Whether the bytes begin a tar archive (POSIX or GNU). */
export const beginsTar = (head: Buffer) => head.toString('latin1', 257, 262) === 'ustar';

/**
 * The content of the only file; the archive itself, if it is one of pg_dump. Folders and the notes that macOS
 * adds do not count. Throws LoadFailed for several files, and for a damaged archive.
 */
export async function* tarredFile(pieces: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = new ExactReader(pieces, damaged);
  const head: Buffer[] = [];
  let found: string | null = null;
  let [entries, bytes] = [0, 0];
  try {
    for (let block = await reader.take(BLOCK); isHeader(block); block = await reader.take(BLOCK)) {
      const { name, isFile, size } = entryOf(block);
      const padding = (BLOCK - (size % BLOCK)) % BLOCK;
      if (!isFile) {
        bytes += size;
        if (++entries > MOST_PASSED_OVER || bytes > MOST_PASSED_OVER_BYTES) throw tooMuch();
        head.push(block, await reader.take(size + padding));
        continue;
      }
      if (found !== null) throw several(found, name);
      if (OF_PG_DUMP.test(name.slice(name.lastIndexOf('/') + 1))) {
        yield* head;
        yield block;
        for (let rest = await reader.piece(); rest !== null; rest = await reader.piece()) yield rest;
        return;
      }
      found = name;
      yield* reader.through(size);
      await reader.take(padding);
    }
    if (found === null) throw new LoadFailed('The tar archive has no file');
  } finally {
    await reader.close();
  }
}

/** Two empty blocks end an archive. */
const isHeader = (block: Buffer) => block.some((byte) => byte !== 0);

function entryOf(block: Buffer): { readonly name: string; readonly isFile: boolean; readonly size: number } {
  const text = (from: number, to: number) => block.toString('latin1', from, to).replace(/\0[\s\S]*$/, '');
  const sum = block.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 32 : byte), 0);
  const size = Number.parseInt(text(124, 136).trim() || '0', 8);
  if (Number.parseInt(text(148, 156).trim(), 8) !== sum || !(size >= 0)) throw damaged();
  const name = Buffer.from(text(0, 100), 'latin1').toString();
  const isNote = name.slice(name.lastIndexOf('/') + 1).startsWith('._');
  return { name, isFile: FILE.has(block.toString('latin1', 156, 157)) && !isNote, size };
}

const damaged = () => new LoadFailed('The file is damaged or cut off: the tar archive cannot be unpacked');

const tooMuch = () =>
  new LoadFailed(
    'The tar archive contains too much besides the dump: pack the dump alone, or unpack the archive',
  );

function several(first: string, second: string): LoadFailed {
  const names = `${JSON.stringify(first.slice(0, 60))} and ${JSON.stringify(second.slice(0, 60))}`;
  return new LoadFailed(`The tar archive has several files, ${names}: unpack the archive, and load one file`);
}
