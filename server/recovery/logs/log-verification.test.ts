/** Damage of archived logs of any kind is found; a part removed because of its age is not damage. */
import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { DirectoryTarget } from '../../drivers/recovery-directory/directory-target.ts';
import { Repository } from '../repository/repository.ts';
import { createRepository } from '../repository/repository-head.ts';
import type { LogLine } from './log-lines.ts';
import { unbroken } from './log-lines.ts';
import { type LogHead, uselessFiles, verifyLogs } from './log-verification.ts';

const { signal } = new AbortController();
const folder = fs.mkdtempSync(join(tmpdir(), 'cloudlet-logs-'));
const target = new DirectoryTarget(folder);
const SERVER = 'postgresql-1';
let repository: Repository;

/** Parts of ten bytes and a base copy, each a second after the previous one. */
async function putLine(line: string, { base, parts }: { base: number; parts: readonly number[] }) {
  const { logs } = repository;
  for (const at of parts) {
    const [from, to] = [BigInt(at * 10), BigInt(at * 10 + 10)];
    await logs.putPart(SERVER, line, { from, to, at: at * 1000, bytes: randomBytes(10) });
  }
  const ended = Promise.resolve({ at: base * 1000 + 500, facts: { major: 17 } });
  const copy = { from: BigInt(base * 10), stream: Readable.from([randomBytes(200_000)]), ended };
  await logs.putBase(SERVER, line, { copy, signal });
}

before(async () => {
  const key = Buffer.alloc(32, 1);
  await createRepository(target, { key, recoveryKey: Buffer.alloc(32, 2) });
  repository = new Repository(target, { key, repositoryId: '' });
  await putLine('a', { base: 1, parts: [1, 2, 3] });
  await putLine('b', { base: 4, parts: [4, 5] });
});
after(() => fs.rmSync(folder, { recursive: true }));

const HEAD: LogHead = { server: SERVER, line: 'b', to: '60', bases: [{ from: '40', at: 4500 }] };
const verify = (heads: readonly LogHead[] = [HEAD]) => verifyLogs({ repository, heads, signal });

test('logs without damage are intact, and counted', async () => {
  const { servers, bases, parts, bytes, damage } = await verify();
  assert.deepEqual([servers, bases, parts, bytes, damage], [1, 2, 5, 400_050, []]);
  assert.deepEqual((await verify([])).damage, []);
});

function filesIn(path: string): string[] {
  const entries = fs.readdirSync(path, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}

test('each file that is missing, cut, altered, or swapped for another is found', async () => {
  const files = [...filesIn(join(folder, 'logs')), ...filesIn(join(folder, 'pieces'))];
  const ways: Record<string, (path: string, bytes: Buffer) => void> = {
    missing: (path) => fs.rmSync(path),
    cut: (path, bytes) => fs.truncateSync(path, randomInt(bytes.length)),
    altered: (path, bytes) => {
      const at = randomInt(bytes.length);
      fs.writeFileSync(path, bytes.with(at, (bytes[at] as number) ^ 0x10));
    },
    swapped: (path) => {
      const other = files.find((one) => one !== path && one.slice(-20) !== path.slice(-20)) as string;
      fs.copyFileSync(other, path);
    },
  };
  let tried = 0;
  for (const path of files) {
    const whole = fs.readFileSync(path);
    for (const [how, hurt] of Object.entries(ways)) {
      hurt(path, whole);
      const { damagedFiles, damage } = await verify();
      assert.ok(damagedFiles > 0, `${path} ${how}`);
      assert.equal(damage[0]?.problem, how === 'missing' ? 'missing' : 'altered', `${path} ${how}`);
      fs.writeFileSync(path, whole);
      tried++;
    }
  }
  assert.ok(tried >= 36, `${tried} were tried`);
  assert.deepEqual((await verify()).damage, []);
});

test('a moment is taken from what is whole alone', async () => {
  const path = filesIn(join(folder, 'logs')).find((file) => file.includes('a.log.0000000000000014'));
  const whole = fs.readFileSync(path as string);
  fs.rmSync(path as string);
  const [line] = await repository.logs.lines(SERVER);
  const runs = unbroken(line as LogLine).map(({ bases, parts }) => [bases.length, parts.map(({ at }) => at)]);
  assert.deepEqual(runs, [
    [1, [1000]],
    [0, [3000]],
  ]);
  fs.writeFileSync(path as string, whole);
  const piece = filesIn(join(folder, 'pieces'))[0] as string;
  const bytes = fs.readFileSync(piece);
  fs.truncateSync(piece, 9);
  const useless = [...uselessFiles(await verify())];
  assert.equal(useless.filter((file) => /^logs.*base/.test(file)).length, 1);
  fs.writeFileSync(piece, bytes);
});

test('what was removed for its age is not missing, also while that goes on', async () => {
  await repository.logs.trim(SERVER, { since: 4600, maxBytes: 1000n, isGone: false });
  assert.deepEqual((await verify()).damage, []);
  assert.deepEqual(
    (await repository.logs.lines(SERVER)).map(({ line }) => line),
    ['b'],
  );
  await repository.logs.trim(SERVER, { since: 9999, maxBytes: 1000n, isGone: true });
  assert.deepEqual((await verify([])).damage, []);
});
