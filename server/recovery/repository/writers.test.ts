import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { cloudName, writerName } from './lease.ts';

const secretOf = (byte: number) => ({ get: async () => Buffer.alloc(32, byte) });

test('a data directory keeps its name when it is moved, and a copy of it has another one', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'cloudlet-writers-'));
  t.after(() => rm(folder, { recursive: true }));
  const [before, after, copy] = ['before', 'after', 'copy'].map((name) => join(folder, name));
  assert.ok(before && after && copy);
  await mkdir(before);
  const name = await writerName(secretOf(1), before);
  assert.match(name, /^[0-9a-f]{32}$/);
  await rename(before, after);
  assert.equal(await writerName(secretOf(1), after), name);
  await cp(after, copy, { recursive: true });
  assert.notEqual(await writerName(secretOf(1), copy), name);
});

test('a cloud with another secret has other names', async () => {
  const [one, other] = [secretOf(1), secretOf(2)];
  assert.equal(await cloudName(one), await cloudName(secretOf(1)));
  assert.notEqual(await cloudName(one), await cloudName(other));
  assert.notEqual(await writerName(one, tmpdir()), await writerName(other, tmpdir()));
  assert.notEqual(await cloudName(one), await writerName(one, tmpdir()));
});
