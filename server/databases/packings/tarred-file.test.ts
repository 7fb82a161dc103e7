/** Archives of tar, as people pack one dump with it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { LoadFailed } from '../engine.ts';
import { unpacked } from './packed-dumps.ts';

const folder = mkdtempSync(join(tmpdir(), 'tarred-'));
after(() => rmSync(folder, { recursive: true }));
const DUMP = '-- a dump\n'.repeat(10_000);
const LONG = `${'long-'.repeat(25)}name.sql`;
for (const name of ['a', 'two', 'pg', 'mac']) mkdirSync(join(folder, name));
for (const name of ['a/dump.sql', `two/${LONG}`, 'two/b.sql', 'mac/._dump.sql', 'mac/dump.sql'])
  writeFileSync(join(folder, name), name.includes('._') ? 'note' : DUMP);
for (const name of ['1.dat.gz', 'toc.dat']) writeFileSync(join(folder, 'pg', name), name);

const tar = (format: string, ...files: string[]) =>
  execFileSync('tar', [`--format=${format}`, '-cf', '-', '-C', folder, ...files], { maxBuffer: 2 ** 24 });

async function read(bytes: Buffer, length = 700): Promise<Buffer> {
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
  }
  const found: Uint8Array[] = [];
  for await (const piece of unpacked(pieces())) found.push(piece);
  return Buffer.concat(found);
}

test('the only file is read, in each form of tar, packed before and after', async () => {
  for (const format of ['ustar', 'gnu', 'posix']) {
    const plain = tar(format, 'a');
    for (const bytes of [plain, gzipSync(plain), tar(format, 'mac')])
      assert.equal(String(await read(bytes)), DUMP, format);
  }
  for (const format of ['gnu', 'posix']) assert.equal(String(await read(tar(format, `two/${LONG}`))), DUMP);
  writeFileSync(join(folder, 'dump.sql.gz'), gzipSync(DUMP));
  assert.equal(String(await read(gzipSync(tar('ustar', 'dump.sql.gz')))), DUMP);
});

test('an archive of pg_dump stays whole', async () => {
  const whole = tar('ustar', 'pg');
  assert.ok((await read(gzipSync(whole))).equals(whole));
});

test('several files, none, and damage are refused with what to do', async () => {
  const damaged = Buffer.from(tar('ustar', 'a'));
  damaged.write('9', 600);
  for (const [bytes, why] of [
    [tar('ustar', 'a', 'two/b.sql'), /several files, "a\/dump.sql" and "two\/b.sql": unpack the archive/],
    [tar('ustar', '--exclude=*.sql', 'a'), /has no file/],
    [tar('ustar', 'a').subarray(0, 5000), /damaged or cut off: the tar archive/],
    [damaged, /damaged or cut off: the tar archive/],
  ] as const)
    await assert.rejects(read(bytes), (error: Error) => {
      assert.ok(error instanceof LoadFailed);
      assert.match(error.message, why);
      return true;
    });
});
