/** The only file of a zip archive, read from its beginning: the index at the end is not needed. */
import { crc32, createInflateRaw, type InflateRaw } from 'node:zlib';
import { LoadFailed } from '../engine.ts';
import { ExactReader } from './exact-reader.ts';

const HEADER_BYTES = 30;
const FILE = 0x04034b50;
const DESCRIPTOR = 0x08074b50;
const STORED = 0;
const DEFLATED = 8;
/** Limits for skipped folders and notes, which the size limit of the database does not include. */
const MOST_PASSED_OVER = 1000;
const MOST_PASSED_OVER_BYTES = 16 * 2 ** 20;
/** A size of 0xffffffff: the real size is in a later field (ZIP64), which only stored files need. */
const FAR_SIZE = 0xffffffff;

interface Header {
  readonly name: string;
  readonly method: number;
  readonly isEncrypted: boolean;
  /** Checksum and size follow the content. */
  readonly isStreamed: boolean;
  readonly crc: number;
  readonly packedBytes: number;
}

/**
 * The content of the only file. Folders and the notes that macOS adds do not count. Throws LoadFailed
 * for several files, a damaged archive, a password, and ways of packing other than deflate.
 */
export async function* zippedFile(pieces: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = new ExactReader(pieces, damaged);
  let found: string | null = null;
  const passedOver = { entries: 0, bytes: 0 };
  try {
    for (let header = await nextHeader(reader); header !== null; header = await nextHeader(reader)) {
      const isData = !isPassedOver(header.name);
      if (isData && found !== null) throw several(found, header.name);
      if (isData) found = header.name;
      else if (++passedOver.entries > MOST_PASSED_OVER) throw tooMuch();
      assertReadable(header);
      let crc = 0;
      for await (const piece of contentOf(header, reader)) {
        crc = crc32(piece, crc);
        if (isData) yield piece;
        else passedOver.bytes += piece.length;
        if (passedOver.bytes > MOST_PASSED_OVER_BYTES) throw tooMuch();
      }
      const expected = header.isStreamed ? await descriptorCrc(reader) : header.crc;
      if (crc !== expected) throw damaged();
    }
    if (found === null) throw new LoadFailed('The zip archive has no file');
  } finally {
    await reader.close();
  }
}

const isPassedOver = (name: string) => name.endsWith('/') || name.startsWith('__MACOSX/');

const damaged = () => new LoadFailed('The file is damaged or cut off: the zip archive cannot be unpacked');

const tooMuch = () =>
  new LoadFailed(
    'The zip archive contains too much besides the dump: zip the dump alone, or unpack the archive',
  );

function several(first: string, second: string): LoadFailed {
  const names = `${JSON.stringify(first.slice(0, 60))} and ${JSON.stringify(second.slice(0, 60))}`;
  return new LoadFailed(`The zip archive has several files, ${names}: unpack the archive, and load one file`);
}

function assertReadable({ isEncrypted, method, isStreamed, packedBytes }: Header): void {
  if (isEncrypted) throw new LoadFailed('The zip archive has a password: unpack it first (`unzip FILE`)');
  const isStored = method === STORED && !isStreamed && packedBytes !== FAR_SIZE;
  if (method !== DEFLATED && !isStored)
    throw new LoadFailed('The zip archive uses an unsupported compression: unpack it first (`unzip FILE`)');
}

/** null: the index begins, so no file follows. */
async function nextHeader(reader: ExactReader): Promise<Header | null> {
  const head = await reader.take(HEADER_BYTES, { mayEnd: true });
  if (head.length < 4) throw damaged();
  if (head.readUInt32LE(0) !== FILE) return null;
  if (head.length < HEADER_BYTES) throw damaged();
  const flags = head.readUInt16LE(6);
  const name = (await reader.take(head.readUInt16LE(26))).toString();
  await reader.take(head.readUInt16LE(28));
  return {
    name,
    method: head.readUInt16LE(8),
    isEncrypted: (flags & 1) !== 0,
    isStreamed: (flags & 8) !== 0,
    crc: head.readUInt32LE(14),
    packedBytes: head.readUInt32LE(18),
  };
}

/** The signature before it is optional. */
async function descriptorCrc(reader: ExactReader): Promise<number> {
  const first = (await reader.take(4)).readUInt32LE(0);
  const crc = first === DESCRIPTOR ? (await reader.take(4)).readUInt32LE(0) : first;
  const sizes = await reader.peek(12);
  // ZIP64 has sizes of 8 bytes; the next signature shows whether they are used.
  const isNear = sizes.length < 12 || sizes.toString('latin1', 8, 10) === 'PK';
  await reader.take(isNear ? 8 : 16);
  return crc;
}

async function* contentOf(header: Header, reader: ExactReader): AsyncGenerator<Uint8Array> {
  if (header.method === DEFLATED) yield* inflated(reader);
  else yield* reader.through(header.packedBytes);
}

/** Deflate marks its own end; bytes read beyond it are pushed back. */
async function* inflated(reader: ExactReader): AsyncGenerator<Uint8Array> {
  const inflate = createInflateRaw();
  let failure: unknown = null;
  const feeding = feed(reader, inflate).catch((error) => {
    failure = error;
    inflate.destroy();
  });
  try {
    for await (const piece of inflate) yield piece as Uint8Array;
  } catch {
    throw failure ?? damaged();
  } finally {
    inflate.destroy();
    await feeding;
  }
  if (failure !== null) throw failure;
}

async function feed(reader: ExactReader, inflate: InflateRaw): Promise<void> {
  while (!inflate.readableEnded && !inflate.destroyed) {
    const piece = await reader.piece();
    if (piece === null) {
      inflate.end();
      return;
    }
    const before = inflate.bytesWritten;
    await new Promise<void>((resolve) => {
      inflate.once('close', resolve);
      inflate.write(piece, () => {
        inflate.off('close', resolve);
        resolve();
      });
    });
    const used = inflate.bytesWritten - before;
    if (used === piece.length) continue;
    reader.putBack(piece.subarray(used));
    inflate.end();
    return;
  }
}
