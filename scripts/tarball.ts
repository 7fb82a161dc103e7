/** Packs an npm package: a gzipped tar with everything below `package/`. */
import { gzipSync } from 'node:zlib';

const BLOCK_BYTES = 512;

/** A file of an archive. */
export interface Entry {
  readonly name: string;
  readonly bytes: Buffer;
  /** Default: 0644. */
  readonly mode?: number;
}

/** An archive in the format ustar; without times, so that the same sources produce the same bytes. */
function tarOf(entries: readonly Entry[]): Buffer {
  const blocks = entries.flatMap((entry) => [
    headerOf(entry),
    entry.bytes,
    Buffer.alloc((BLOCK_BYTES - (entry.bytes.length % BLOCK_BYTES)) % BLOCK_BYTES),
  ]);
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)]);
}

function headerOf({ name, bytes, mode = 0o644 }: Entry): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
  header.write(name, 0);
  header.write(octal(mode, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(bytes.length, 11), 124);
  header.write(octal(0, 11), 136);
  header.write(' '.repeat(8), 148);
  header.write('0', 156);
  header.write('ustar\0' + '00', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

/** The package with this `package.json` and these files. */
export function packageOf(description: object, files: readonly Entry[]): Buffer {
  const first = { name: 'package.json', bytes: Buffer.from(`${JSON.stringify(description, null, 2)}\n`) };
  const entries = [first, ...files].map((entry) => ({ ...entry, name: `package/${entry.name}` }));
  return gzipSync(tarOf(entries), { level: 9 });
}
