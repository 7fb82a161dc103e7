import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { notInstalled } from '../../../scripts/installed.ts';
import { randomSecret } from '../../platform/ids.ts';
import { frameCodec } from '../blob-frames/frame-codec.ts';
import { LARGE_SLOT_BYTES } from '../blob-frames/slot-pool.ts';
import { AlignedAreas } from './aligned-areas.ts';
import { CachedAppender, DirectAppender } from './appender.ts';
import { FrameWriter } from './frame-writer.ts';

// On a disk, because the usual temporary directory may not be on one.
const scratch = mkdtempSync('/var/tmp/cloudlet-appender-');
const areas = new AlignedAreas(scratch, 4);
let files = 0;

before(() => assert.ok(areas.usable, 'the file system of /var/tmp takes O_DIRECT'));
after(() => rmSync(scratch, { recursive: true }));

function create(flags = constants.O_DIRECT): { readonly fd: number; readonly path: string } {
  const path = join(scratch, `file-${files++}`);
  return { fd: openSync(path, constants.O_WRONLY | constants.O_CREAT | flags, 0o600), path };
}

test('however bytes are cut into parts, the file has them and no other', async () => {
  const content = randomSecret(LARGE_SLOT_BYTES);
  const length = fc.oneof(fc.integer({ min: 0, max: 70_000 }), fc.constantFrom(4095, 4096, 4097, 65_540));
  const appends = fc.array(fc.array(length, { maxLength: 7 }), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(appends, fc.boolean(), async (lengths, direct) => {
      const { fd, path } = create(direct ? constants.O_DIRECT : 0);
      const file = direct ? new DirectAppender(fd, areas) : new CachedAppender(fd);
      const expected: Buffer[] = [];
      for (const some of lengths) {
        const parts = some.map((bytes) => Buffer.from(content.subarray(0, bytes)));
        expected.push(...parts.map((part) => Buffer.from(part)));
        await file.append(parts);
        for (const part of parts) part.fill(0);
      }
      await file.end();
      closeSync(fd);
      assert.ok(readFileSync(path).equals(Buffer.concat(expected)));
      rmSync(path);
    }),
    { numRuns: 60 },
  );
});

test('a failed write is reported by the next call and by the end, and no area is lost', async () => {
  const path = join(scratch, 'readable');
  closeSync(openSync(path, 'w'));
  for (let i = 0; i < 20; i++) {
    const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECT);
    const file = new DirectAppender(fd, areas);
    await file.append([randomSecret(10_000)]);
    if (i % 2 === 0) await assert.rejects(file.append([randomSecret(10_000)]), { code: 'EBADF' });
    await assert.rejects(file.end(), { code: 'EBADF' });
    await file.drain();
    closeSync(fd);
  }
});

test('more files than areas take turns', async () => {
  const content = randomSecret(LARGE_SLOT_BYTES);
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      const { fd, path } = create();
      const file = new DirectAppender(fd, areas);
      for (let i = 0; i < 3; i++) await file.append([content, Buffer.from('tail')]);
      await file.end();
      closeSync(fd);
      const piece = Buffer.concat([content, Buffer.from('tail')]);
      assert.ok(readFileSync(path).equals(Buffer.concat([piece, piece, piece])));
    }),
  );
});

test('a descriptor is closed only when no write uses it any more', async () => {
  for (let round = 0; round < 10; round++) {
    const { fd, path } = create();
    const writer = new FrameWriter(fd, new DirectAppender(fd, areas), frameCodec('blob', null));
    const appending = Array.from({ length: 4 }, () => writer.append(randomSecret(LARGE_SLOT_BYTES), false));
    const outcomes = Promise.allSettled(appending);
    await writer.close();
    assert.ok(statSync(path).size >= 4 * LARGE_SLOT_BYTES);
    assert.deepEqual(
      (await outcomes).map(({ status }) => status),
      Array(4).fill('fulfilled'),
    );
  }
});

const isRoot = process.getuid?.() === 0;

test('without O_DIRECT on the file system: not usable', {
  skip: isRoot ? notInstalled('mount') : 'mounting a file system needs root',
}, () => {
  const directory = mkdtempSync(join(scratch, 'ramfs-'));
  assert.equal(new AlignedAreas('/proc', 1).usable, false);
  assert.equal(new AlignedAreas(scratch, 0).usable, false);
  execFileSync('mount', ['-t', 'ramfs', 'ramfs', directory]);
  try {
    assert.equal(new AlignedAreas(directory, 1).usable, false);
  } finally {
    execFileSync('umount', ['-l', directory]);
  }
});
