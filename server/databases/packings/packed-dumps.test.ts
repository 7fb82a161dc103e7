/** Dumps compressed as a whole, by commonly used programs. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { constants, createZstdCompress, gzipSync, zstdCompressSync } from 'node:zlib';
import { notInstalled } from '../../../scripts/installed.ts';
import { LoadFailed } from '../engine.ts';
import { unpacked } from './packed-dumps.ts';
import { bzip2Unpacker, xzUnpacker } from './program-unpackers.ts';

const MOST = 64 * 2 ** 20;
const xz = (bytes: Buffer, ...options: string[]) =>
  execFileSync('xz', ['-c', ...options], { input: bytes, maxBuffer: MOST });
const PLAIN = Buffer.concat([
  Buffer.from('-- PostgreSQL database dump\n'.repeat(20_000)),
  randomBytes(3 * 2 ** 20),
]);

async function* pieces(bytes: Buffer, length = 60_000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

async function all(from: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const found: Uint8Array[] = [];
  for await (const piece of from) found.push(piece);
  return Buffer.concat(found);
}

describe('packed with xz', { skip: notInstalled('xz') }, () => {
  const same = async (bytes: Buffer, length?: number) =>
    assert.ok((await all(unpacked(pieces(bytes, length)))).equals(PLAIN));

  test('at each level, in blocks, without a checksum, in two files after each other, it is unpacked', async () => {
    await same(xz(PLAIN));
    await same(xz(PLAIN, '-9e'));
    await same(xz(PLAIN, '-0', '-T2', '--block-size=1MiB'));
    await same(xz(PLAIN, '--check=none'));
    await same(xz(PLAIN, '--check=sha256'), 1_000_000);
    await same(Buffer.concat([xz(PLAIN.subarray(0, 1000)), xz(PLAIN.subarray(1000))]));
  });

  test('inside of another, and another inside of it, too', async () => {
    await same(gzipSync(xz(PLAIN)));
    await same(xz(zstdCompressSync(PLAIN)));
  });

  test('what is damaged or cut off is refused, with the reason of xz', async () => {
    const packed = xz(PLAIN);
    const damaged = Buffer.from(packed);
    damaged.fill(0xaa, 100_000, 100_100);
    for (const [bytes, why] of [
      [packed.subarray(0, -100), /cut off: xz cannot unpack it \(Unexpected end of input\)/],
      [damaged, /cut off: xz cannot unpack it \(Compressed data is corrupt\)/],
      [packed.subarray(0, 6), /xz cannot unpack it/],
    ] as const)
      await assert.rejects(all(unpacked(pieces(bytes))), (error: Error) => {
        assert.ok(error instanceof LoadFailed, String(error));
        assert.match(error.message, why);
        return true;
      });
  });

  test('whoever reads no more ends the program', async () => {
    const stream = await xzUnpacker();
    const packed = xz(Buffer.alloc(50 * 2 ** 20));
    stream.end(packed);
    for await (const _ of stream) break;
    assert.ok(stream.destroyed);
    for await (const piece of unpacked(pieces(packed))) {
      assert.ok(piece.length > 0);
      break;
    }
  });

  test('an error of what is read is that, not one of xz', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield* pieces(xz(PLAIN).subarray(0, 500_000));
      throw new Error('the client went away');
    }
    await assert.rejects(all(unpacked(broken())), /the client went away/);
  });
});

describe('packed with bzip2', { skip: notInstalled('bzip2') }, () => {
  const packed = execFileSync('bzip2', ['-c'], { input: PLAIN, maxBuffer: MOST });

  test('it is unpacked', async () => {
    assert.ok((await all(unpacked(pieces(packed)))).equals(PLAIN));
    assert.ok((await all(unpacked(pieces(gzipSync(packed))))).equals(PLAIN));
  });

  test('what is cut off or damaged is refused, with the reason of bzip2', async () => {
    const damaged = Buffer.from(packed);
    damaged.fill(0xaa, 100_000, 100_100);
    await assert.rejects(
      all(unpacked(pieces(packed.subarray(0, -100)))),
      /cut off: bzip2 cannot unpack it \(\S/,
    );
    await assert.rejects(all(unpacked(pieces(damaged))), /bzip2 cannot unpack it \(\S/);
  });

  test('a host without bzip2 says so, and what to do', async () => {
    await assert.rejects(bzip2Unpacker(null), /packed with bzip2.*`bunzip2 FILE`.*package bzip2/);
  });
});

test('a host without xz says so, and what to do', async () => {
  await assert.rejects(xzUnpacker(null), /no program for that: unpack it first \(`unxz FILE`\)/);
});

test('a file of zstd that claims much memory is refused, with what to do; those of usual levels are not', async () => {
  const packed = (params: Readonly<Record<number, number>>) => {
    // Its size is not known before, so the file names the memory.
    const stream = createZstdCompress({ params });
    stream.end(PLAIN);
    return all(stream);
  };
  const { ZSTD_c_compressionLevel: level, ZSTD_c_windowLog: windowLog } = constants;
  const large = await packed({ [windowLog]: 27 });
  await assert.rejects(all(unpacked(pieces(large))), (error: Error) => {
    assert.ok(error instanceof LoadFailed && /`unzstd FILE`/.test(error.message), error.message);
    return true;
  });
  for (const each of [1, 19])
    assert.ok((await all(unpacked(pieces(await packed({ [level]: each }))))).equals(PLAIN));
});
