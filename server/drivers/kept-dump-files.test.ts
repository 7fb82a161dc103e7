import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { AppError } from '../platform/errors.ts';
import { KeptDumpFiles } from './kept-dump-files.ts';

const directory = await mkdtemp(join(tmpdir(), 'cloudlet-kept-'));
after(() => rm(directory, { recursive: true, force: true }));

let freeBytes = Number.POSITIVE_INFINITY;
const assertSpace = (bytes: number) => {
  if (bytes > freeBytes) throw new AppError('out_of_space', 'no space');
  freeBytes -= bytes;
};
const open = () => KeptDumpFiles.open({ directory, assertSpace });
const dumpOf = (...pieces: string[]) => Readable.from(pieces.map((piece) => Buffer.from(piece)));

async function read(kept: KeptDumpFiles, id: string): Promise<string> {
  let content = '';
  await kept.read(id, async (dump) => {
    content = await text(dump);
  });
  return content;
}

test('a dump is kept as it was, replaced by a later one, and removed', async () => {
  const kept = await open();
  assert.equal(await kept.keep('db-a', dumpOf('one ', 'two')), 7);
  assert.equal(await read(kept, 'db-a'), 'one two');
  assert.equal((await stat(join(directory, 'db-a'))).mode & 0o777, 0o600);
  await kept.keep('db-a', dumpOf('three'));
  assert.equal(await read(await open(), 'db-a'), 'three');
  assert.deepEqual(await kept.list(), ['db-a']);
  await kept.remove('db-a');
  await kept.remove('db-a');
  assert.deepEqual(await kept.list(), []);
  await assert.rejects(read(kept, 'db-a'), { code: 'ENOENT' });
});

test('of a dump that fails, or for which there is no space, nothing is left', async () => {
  const kept = await open();
  await kept.keep('db-b', dumpOf('before'));
  const failing = async function* () {
    yield Buffer.from('half');
    throw new Error('the engine went away');
  };
  await assert.rejects(kept.keep('db-b', Readable.from(failing())), /went away/);
  freeBytes = 3;
  await assert.rejects(kept.keep('db-b', dumpOf('abc', 'd')), { code: 'out_of_space' });
  freeBytes = Number.POSITIVE_INFINITY;
  assert.equal(await read(kept, 'db-b'), 'before');
  assert.deepEqual(await readdir(directory), ['db-b']);
  await kept.remove('db-b');
});

test('a file that is no dump, such as the mark of the cloud, is not listed, so that no sweep removes it', async () => {
  const kept = await open();
  await writeFile(join(directory, '.cloud'), '{}');
  await writeFile(join(directory, 'readme.txt'), 'mine');
  assert.deepEqual(await kept.list(), []);
  for (const name of ['.cloud', 'readme.txt']) await rm(join(directory, name));
});

test('what was cut off in a crash is removed at the next start', async () => {
  await writeFile(join(directory, 'db-c.part'), 'half');
  const kept = await open();
  assert.deepEqual(await kept.list(), []);
  assert.deepEqual(await readdir(directory), []);
});
