/** Unpacks dumps that were compressed as a whole, recognized by their first bytes. */
import type { Duplex, Readable } from 'node:stream';
import { constants, createGunzip, createZstdDecompress } from 'node:zlib';
import { LoadFailed } from '../engine.ts';
import { begin } from '../file-start.ts';
import { bzip2Unpacker, xzUnpacker } from './program-unpackers.ts';
import { beginsTar, tarredFile } from './tarred-file.ts';
import { zippedFile } from './zipped-file.ts';

interface Packing {
  readonly name: string;
  readonly magic: Buffer;
  /** Missing: the format cannot be unpacked here, or `open` unpacks it. */
  readonly unpack?: () => Duplex | Promise<Duplex>;
  /** Takes one file out of an archive. */
  readonly open?: (pieces: AsyncGenerator<Uint8Array>) => AsyncGenerator<Uint8Array>;
  /** The command that unpacks. */
  readonly command: string;
}

/**
 * Memory of a decoder, which an upload in progress holds: enough for all levels of zstd up to 19. Without a
 * limit it is 128 MiB, which a few bytes can claim.
 */
const ZSTD_WINDOW_LOG = 23;
const TOO_LARGE_WINDOW = /too much memory/i;
const openZstd = () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } });

const PACKINGS: readonly Packing[] = [
  { name: 'gzip', magic: Buffer.from([0x1f, 0x8b]), unpack: createGunzip, command: 'gunzip FILE' },
  {
    name: 'zstd',
    magic: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]),
    unpack: openZstd,
    command: 'unzstd FILE',
  },
  {
    name: 'xz',
    magic: Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]),
    unpack: xzUnpacker,
    command: 'unxz FILE',
  },
  { name: 'lz4', magic: Buffer.from([0x04, 0x22, 0x4d, 0x18]), command: 'unlz4 FILE' },
  { name: 'bzip2', magic: Buffer.from('BZh'), unpack: bzip2Unpacker, command: 'bunzip2 FILE' },
  { name: 'zip', magic: Buffer.from('PK\x03\x04'), open: zippedFile, command: 'unzip FILE' },
  { name: '7z', magic: Buffer.from([0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c]), command: '7z x FILE' },
];
/** The mark of tar comes last. */
const MAGIC_BYTES = 262;
/** A file may be compressed twice, for example by a web server. */
const MOST_LAYERS = 2;

interface Unpacking {
  readonly layers?: number;
  readonly mayBeTar?: boolean;
  /** Limits each layer: a large one may unpack to no bytes. */
  readonly bound?: (layer: AsyncGenerator<Uint8Array>) => AsyncGenerator<Uint8Array>;
}

/**
 * The pieces, unpacked. Throws LoadFailed for a file that is damaged or compressed in another way,
 * with the command that unpacks it.
 */
export async function* unpacked(
  pieces: AsyncIterable<Uint8Array>,
  { layers = MOST_LAYERS, mayBeTar = true, bound = (layer) => layer }: Unpacking = {},
): AsyncGenerator<Uint8Array> {
  const { head, whole, close } = await begin(pieces, ({ length }) => length >= MAGIC_BYTES);
  const packing = PACKINGS.find(({ magic }) => head.subarray(0, magic.length).equals(magic));
  if (packing === undefined) {
    if (mayBeTar && beginsTar(head)) yield* unpacked(tarredFile(whole), { layers, mayBeTar: false, bound });
    else yield* whole;
    return;
  }
  const { name, unpack, open, command } = packing;
  if (open !== undefined && layers > 0) {
    yield* unpacked(bound(open(whole)), { layers: layers - 1, mayBeTar, bound });
    return;
  }
  if (unpack === undefined || layers === 0) {
    const what =
      layers === 0 ? 'packed in too many layers' : `packed with ${name}, which is not unpacked here`;
    await close();
    throw new LoadFailed(
      `The file is ${what}: unpack it first (\`${command}\`), or pack it with gzip, zstd, xz, bzip2 or zip`,
    );
  }
  // Nothing more is read from the file if no unpacker exists.
  const unpacker = await Promise.try(unpack).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  yield* unpacked(bound(through(whole, unpacker, name)), { layers: layers - 1, mayBeTar, bound });
}

async function* through(
  pieces: AsyncIterable<Uint8Array>,
  unpacker: Duplex,
  name: string,
): AsyncGenerator<Uint8Array> {
  let failure: unknown = null;
  const feed = async () => {
    for await (const piece of pieces) {
      if (unpacker.destroyed) return;
      if (!unpacker.write(piece)) await emptied(unpacker);
    }
    unpacker.end();
  };
  const feeding = feed().catch((error) => {
    failure = error;
    unpacker.destroy();
  });
  try {
    yield* unpacker as Readable;
  } catch (error) {
    throw failure ?? new LoadFailed(unpackingFailed(name, said(error)));
  } finally {
    unpacker.destroy();
    await feeding;
  }
}

function unpackingFailed(name: string, reason: string): string {
  if (!TOO_LARGE_WINDOW.test(reason))
    return `The file is damaged or cut off: ${name} cannot unpack it (${reason})`;
  return (
    `The file needs more memory to unpack than is available, as with \`zstd --long\` or \`zstd --ultra\`: unpack ` +
    'it first (`unzstd FILE`), or pack it with a level up to 19'
  );
}

/** Resolves when it accepts more data, or is closed. */
function emptied(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      stream.off('drain', over).off('close', over);
      resolve();
    };
    stream.once('drain', over).once('close', over);
  });
}

const said = (error: unknown) => (error instanceof Error ? error.message : String(error));
