import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { noQemu } from '../../../testing/qemu-fixture.ts';
import { testGuestDisk } from '../../../testing/test-guest.ts';
import { HEADER_BYTES, ImageRefused, type RecognizedImage, recognizeImage } from './image-header.ts';

const GIB = 2 ** 30;
const FILE_BYTES = 4 * 65_536;

/** A plain qcow2 of version 3, 1 GiB, with 64 KiB clusters, as written by QEMU's tools. */
function header(change: (bytes: Buffer) => void = () => {}): Buffer {
  const bytes = Buffer.alloc(65_536);
  bytes.write('QFI\xfb', 'latin1');
  bytes.writeUInt32BE(3, 4);
  bytes.writeUInt32BE(16, 20);
  bytes.writeBigUInt64BE(BigInt(GIB), 24);
  bytes.writeUInt32BE(2, 36);
  bytes.writeBigUInt64BE(3n * 65_536n, 40);
  bytes.writeBigUInt64BE(65_536n, 48);
  bytes.writeUInt32BE(1, 56);
  bytes.writeUInt32BE(4, 96);
  bytes.writeUInt32BE(112, 100);
  change(bytes);
  return bytes;
}

const recognize = (head: Buffer, fileBytes = FILE_BYTES) => recognizeImage(head, fileBytes, 20 * GIB);

function refuses(words: RegExp, change: (bytes: Buffer) => void): void {
  assert.throws(
    () => recognize(header(change)),
    (error) => error instanceof ImageRefused && words.test(error.message),
    String(words),
  );
}

test('a plain image is recognized by its bytes', () => {
  assert.deepEqual(recognize(header()), { format: 'qcow2', virtualBytes: GIB });
  const v2 = header((bytes) => {
    bytes.writeUInt32BE(2, 4);
    bytes.fill(0, 72);
  });
  assert.deepEqual(recognize(v2), { format: 'qcow2', virtualBytes: GIB });
  const raw = testGuestDisk();
  assert.deepEqual(recognize(raw.subarray(0, HEADER_BYTES), raw.length), {
    format: 'raw',
    virtualBytes: raw.length,
  });
  assert.equal(recognize(raw, 1000).virtualBytes, 1024);
});

test('an image that needs other files is refused', () => {
  refuses(/backing file/, (bytes) => bytes.writeBigUInt64BE(200n, 8));
  refuses(/backing file/, (bytes) => bytes.writeUInt32BE(11, 16));
  refuses(/backing file/, (bytes) => bytes.writeUInt32BE(0xe2792aca, 112));
  refuses(/data in another file/, (bytes) => bytes.writeBigUInt64BE(4n, 72));
  refuses(/data in another file/, (bytes) => bytes.writeUInt32BE(0x44415441, 112));
  refuses(/data in another file/, (bytes) => {
    bytes.writeUInt32BE(0x6803f857, 112);
    bytes.writeUInt32BE(5, 116);
    bytes.writeUInt32BE(0x44415441, 128);
  });
});

test('an image that is encrypted, damaged, with snapshots or of an unknown kind is refused', () => {
  for (const method of [1, 2, 3]) refuses(/encrypted/, (bytes) => bytes.writeUInt32BE(method, 32));
  refuses(/encrypted/, (bytes) => bytes.writeUInt32BE(0x0537be77, 112));
  refuses(/snapshots/, (bytes) => bytes.writeUInt32BE(1, 60));
  refuses(/closed properly/, (bytes) => bytes.writeBigUInt64BE(1n, 72));
  refuses(/damaged/, (bytes) => bytes.writeBigUInt64BE(2n, 72));
  for (const bit of [5n, 31n, 63n])
    refuses(/unknown features/, (bytes) => bytes.writeBigUInt64BE(1n << bit, 72));
  for (const version of [0, 1, 4, 0xffffffff]) refuses(/version/, (bytes) => bytes.writeUInt32BE(version, 4));
  refuses(/unknown compression/, (bytes) => bytes.writeUInt8(2, 104));
});

test('absurd sizes are refused', () => {
  refuses(/21 GB, and at most 20/, (bytes) => {
    bytes.writeBigUInt64BE(BigInt(21 * GIB), 24);
    bytes.writeUInt32BE(42, 36);
  });
  for (const size of [0n, 511n, 1n << 63n, (1n << 64n) - 1n]) {
    refuses(/invalid disk size/, (bytes) => bytes.writeBigUInt64BE(size, 24));
  }
  for (const bits of [0, 8, 22, 63, 0xffffffff])
    refuses(/invalid cluster size/, (bytes) => bytes.writeUInt32BE(bits, 20));
  for (const entries of [0, 1, 4_194_305, 0xffffffff]) {
    refuses(/invalid cluster table/, (bytes) => bytes.writeUInt32BE(entries, 36));
  }
  for (const offset of [0n, 1n, 65_537n, BigInt(FILE_BYTES), (1n << 64n) - 65_536n]) {
    refuses(/invalid cluster table/, (bytes) => bytes.writeBigUInt64BE(offset, 40));
    refuses(/invalid reference count table/, (bytes) => bytes.writeBigUInt64BE(offset, 48));
  }
  for (const clusters of [0, 129, 0xffffffff]) {
    refuses(/invalid reference count table/, (bytes) => bytes.writeUInt32BE(clusters, 56));
  }
  refuses(/invalid reference count width/, (bytes) => bytes.writeUInt32BE(7, 96));
  for (const length of [0, 72, 103, 113, 70_000]) {
    refuses(/invalid header length/, (bytes) => bytes.writeUInt32BE(length, 100));
  }
  refuses(/extensions/, (bytes) => {
    bytes.writeUInt32BE(0x11111111, 112);
    bytes.writeUInt32BE(0xfffffff0, 116);
  });
});

test('what people bring by mistake is named', () => {
  const cases: readonly (readonly [number, string, RegExp])[] = [
    [0, 'KDMV', /VMDK/],
    [0, '\x1f\x8b', /gzip/],
    [0, '\xfd7zXZ\0', /xz/],
    [32_769, 'CD001', /installation medium/],
    [0, 'hello', /neither/],
  ];
  for (const [offset, magic, words] of cases) {
    const bytes = Buffer.alloc(HEADER_BYTES);
    bytes.write(magic, offset, 'latin1');
    if (magic === 'CD001') bytes.writeUInt16LE(0xaa55, 510);
    assert.throws(() => recognize(bytes), words);
  }
  for (const bytes of [Buffer.alloc(0), Buffer.from('Q'), Buffer.from('QFI\xfb', 'latin1')]) {
    assert.throws(() => recognize(bytes, bytes.length), ImageRefused);
  }
});

test('whatever the bytes are, they are recognized or refused, never trusted', () => {
  const changes = fc.array(
    fc.tuple(fc.nat(140), fc.nat(255)).map(([at, value]) => ({ at, value })),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(changes, fc.nat(70_000), (edits, cut) => {
      const bytes = header((whole) => {
        for (const { at, value } of edits) whole[at] = value;
      }).subarray(0, cut);
      let found: RecognizedImage;
      try {
        found = recognize(bytes);
      } catch (error) {
        assert.ok(error instanceof ImageRefused);
        return;
      }
      assert.ok(found.virtualBytes > 0 && found.virtualBytes <= 20 * GIB);
      if (found.format === 'raw') return;
      assert.equal(bytes.readBigUInt64BE(8), 0n);
      assert.equal(bytes.readUInt32BE(32), 0);
    }),
    { numRuns: 2000 },
  );
});

test('what the real tools write is taken or refused as it should be', { skip: noQemu }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-header-'));
  try {
    const inspect = (name: string, ...words: string[]) => {
      execFileSync('qemu-img', words, { cwd: folder, stdio: 'pipe' });
      const path = join(folder, name);
      return recognize(readFileSync(path).subarray(0, HEADER_BYTES), statSync(path).size);
    };
    const create = (name: string, ...options: string[]) =>
      inspect(
        name,
        'create',
        '-q',
        '-f',
        'qcow2',
        ...options.flatMap((option) => ['-o', option]),
        name,
        '3G',
      );
    const plain = { format: 'qcow2', virtualBytes: 3 * GIB };
    assert.deepEqual(create('plain'), plain);
    assert.deepEqual(create('old', 'compat=0.10'), plain);
    assert.deepEqual(create('small', 'cluster_size=512'), plain);
    assert.deepEqual(create('large', 'cluster_size=2M'), plain);
    assert.deepEqual(create('zstd', 'compression_type=zstd'), plain);
    assert.deepEqual(create('extended', 'extended_l2=on,cluster_size=128k'), plain);
    writeFileSync(join(folder, 'disk.raw'), testGuestDisk());
    const convert = ['convert', '-c', '-f', 'raw', '-O', 'qcow2', 'disk.raw', 'packed'];
    assert.equal(inspect('packed', ...convert).virtualBytes, testGuestDisk().length);
    assert.throws(() => create('apart', 'data_file=data'), /another file/);
    // Not LUKS: for LUKS, qemu-img first measures the processor, which fails on some hosts.
    const secret = ['--object', 'secret,id=s,data=abc', '-o', 'encrypt.format=aes,encrypt.key-secret=s'];
    assert.throws(
      () => inspect('locked', 'create', '-q', '-f', 'qcow2', ...secret, 'locked', '1G'),
      /encrypted/,
    );
    const backing = ['-b', 'plain', '-F', 'qcow2', 'above'];
    assert.throws(() => inspect('above', 'create', '-q', '-f', 'qcow2', ...backing), /backing/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
