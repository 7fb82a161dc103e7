import assert from 'node:assert/strict';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, truncateSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { notInstalled } from '../../../scripts/installed.ts';
import { holesOf } from '../../drivers/qemu/images/file-holes.ts';
import { DirectoryTarget } from '../../drivers/recovery-directory/directory-target.ts';
import { randomSecret } from '../../platform/ids.ts';
import type { Entry } from '../points/manifest.ts';
import { fixedBlocks, HOLE } from '../repository/chunks.ts';
import { newRecoveryKey } from '../repository/recovery-keys.ts';
import { Repository } from '../repository/repository.ts';
import { createRepository } from '../repository/repository-head.ts';
import { differenceOf } from './file-comparison.ts';

const MIB = 2 ** 20;
const SIZE_MIB = 4096;
const folder = mkdtempSync(join(tmpdir(), 'cloudlet-compare-'));
const path = join(folder, 'disk');
const data = randomSecret(2 * MIB);
let repository: Repository;
let entry: Entry;

function write(bytes: Uint8Array, at: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, bytes, 0, bytes.length, at);
  closeSync(file);
}

const difference = () => differenceOf(entry, { repository, path, holesOf });

/** Bytes read by this process so far, by any call. */
const bytesRead = () => Number(/^rchar: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);

before(async () => {
  const target = new DirectoryTarget(join(folder, 'target'));
  const created = await createRepository(target, { key: randomSecret(32), recoveryKey: newRecoveryKey() });
  assert.ok(created !== undefined);
  repository = new Repository(target, created);
  const stored = await repository.store(
    fixedBlocks(
      (async function* () {
        yield data;
        yield HOLE;
      })(),
    ),
    { isPacked: false, signal: new AbortController().signal },
  );
  assert.equal(stored.pieces.at(-1), repository.holeName);
  const holes = Array<string>(SIZE_MIB - 4).fill(repository.holeName);
  const pieces = [...stored.pieces.slice(0, 2), ...holes, ...stored.pieces.slice(0, 2)];
  entry = { path: 'disk', mode: 0o600, size_bytes: SIZE_MIB * MIB, pieces };
  closeSync(openSync(path, 'w'));
  truncateSync(path, SIZE_MIB * MIB);
  for (const at of [0, (SIZE_MIB - 2) * MIB]) write(data, at);
});
after(() => rmSync(folder, { recursive: true }));

test('the holes of a disk are not read', { skip: notInstalled('qemu-img') }, async () => {
  const before = bytesRead();
  assert.equal(await difference(), null);
  const read = bytesRead() - before;
  assert.ok(read < (SIZE_MIB / 4) * MIB, `${read} bytes were read`);
});

test('a byte in a hole, or of the data, is a difference; zeros in a hole are none', async () => {
  write(Buffer.alloc(3 * MIB), 700 * MIB + 5);
  assert.equal(await difference(), null);
  const at = 3000 * MIB + 4321;
  write(Buffer.from('x'), at);
  assert.equal(await difference(), `differs from byte ${at} on`);
  write(Buffer.from([0]), at);
  write(Buffer.from([(data[7] ?? 0) ^ 1]), (SIZE_MIB - 2) * MIB + 7);
  assert.equal(await difference(), `differs from byte ${(SIZE_MIB - 2) * MIB + 7} on`);
  truncateSync(path, MIB);
  assert.match(String(await difference()), /has 1048576 bytes, but/);
});
