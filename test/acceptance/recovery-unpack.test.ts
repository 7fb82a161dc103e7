/** A recovery point is unpacked by a script that knows only the page on the format. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { newDatabase } from './databases-kit.ts';
import { LosableCloud } from './recovery-kit.ts';

const SCRIPT = fileURLToPath(new URL('../../scripts/unpack-recovery.js', import.meta.url));
let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start();
  const { user } = lost;
  await user.expect(201, '/api/buckets', { json: { name: 'plain', versioning: true } });
  await user.expect(201, '/api/buckets', { json: { name: 'sealed', versioning: true, encryption: true } });
  for (const bucket of ['plain', 'sealed']) {
    // More than one piece; only a hole; dense enough to be packed; the same name twice.
    await user.upload(bucket, 'large', randomBytes(2_500_000));
    await user.upload(bucket, 'zeros', Buffer.alloc(3 * 2 ** 20));
    await user.upload(bucket, 'text', Buffer.from('to be or not to be '.repeat(50_000)));
    await user.upload(bucket, 'large', randomBytes(70_000));
  }
  await newDatabase(user, 'CREATE TABLE t (x)', 'INSERT INTO t VALUES (7)');
  assert.equal((await lost.point()).state, 'complete');
  await lost.keepKey();
});
after(() => lost.end());

function unpack(...words: readonly string[]): Promise<{ code: number; out: string; said: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [SCRIPT, ...words], { env: {} }, (error, out, said) =>
      resolve({ code: error === null ? 0 : Number(error.code), out, said }),
    );
  });
}

/** The SHA-256 of each: a failed comparison of bytes would fill the memory with their difference. */
function sumsBelow(folder: string): Record<string, string> {
  const sums = [...filesBelow(folder)].map(([path, bytes]) => [
    path,
    createHash('sha256').update(bytes).digest('hex'),
  ]);
  return Object.fromEntries(sums);
}

function filesBelow(folder: string): Map<string, Buffer> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  // Except the marks that name the owner of the folders.
  const files = entries.filter((entry) => entry.isFile() && entry.name !== '.cloud');
  const paths = files.map((entry) => join(entry.parentPath, entry.name));
  return new Map(paths.sort().map((path) => [relative(folder, path), readFileSync(path)]));
}

test('the unpacked tree has the bytes of the original one', async () => {
  const to = join(lost.root, 'unpacked');
  const { code, out, said } = await unpack(lost.target, lost.keyFile, to);
  assert.deepEqual([code, said], [0, '']);
  assert.match(out, /^drp-\S+, taken at \S+ \S+ UTC: \d+ files unpacked to .*, 0 missing\n$/);
  const blobs = sumsBelow(join(lost.dataDir, 'blobs'));
  assert.equal(Object.keys(blobs).length, 8);
  assert.deepEqual(sumsBelow(join(to, 'blobs')), blobs);
  assert.deepEqual(readFileSync(join(to, 'master.key')), readFileSync(join(lost.dataDir, 'master.key')));
  assert.equal(statSync(join(to, 'master.key')).mode & 0o777, 0o600);
  const [dump] = filesBelow(join(to, 'databases', 'kept')).values();
  for (const file of [readFileSync(join(to, 'metadata.db')), dump]) {
    assert.equal(file?.subarray(0, 15).toString(), 'SQLite format 3');
  }
});

test('what is damaged is named, and the rest is unpacked', async () => {
  const pieces = [...filesBelow(join(lost.target, 'pieces'))];
  const [name = '', bytes = Buffer.alloc(0)] = pieces.find(([, { length }]) => length > 900_000) ?? [];
  const flipped = Buffer.from(bytes);
  flipped[500] = (flipped[500] as number) ^ 1;
  writeFileSync(join(lost.target, 'pieces', name), flipped);
  const to = join(lost.root, 'damaged');
  const { code, out, said } = await unpack(lost.target, lost.keyFile, to);
  assert.equal(code, 1);
  assert.match(said, /^missing: (blobs|images|vms)\/\S+: [0-9a-f]{64} is damaged\n$/);
  assert.match(out, /, 1 missing\n$/);
  assert.ok(!existsSync(join(to, String(said.split(': ')[1]))));
  rmSync(join(lost.target, 'pieces', name));
  const { said: missing } = await unpack(lost.target, lost.keyFile, join(lost.root, 'missing'));
  assert.match(missing, /: piece [0-9a-f]{64} is missing\n$/);
});

test('another key, another point and a directory with files are refused in one line', async () => {
  const to = join(lost.root, 'refused');
  const other = join(lost.root, 'other-key');
  for (const [text, words] of [
    [`clr-${'0'.repeat(56)}`, /mistyped/],
    ['password', /56 letters and digits/],
  ] as const) {
    writeFileSync(other, text);
    assert.match((await unpack(lost.target, other, to)).said, words);
  }
  assert.match(
    (await unpack(lost.target, lost.keyFile, to, 'drp-none')).said,
    /^unpack-recovery: .*available: drp-/,
  );
  assert.match((await unpack(lost.root, lost.keyFile, to)).said, /is not a recovery repository/);
  assert.match((await unpack(lost.target, lost.keyFile, lost.dataDir)).said, /is not empty/);
  assert.ok(!existsSync(to));
});
