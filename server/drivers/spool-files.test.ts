import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { spoolsIn } from './spool-files.ts';

const directory = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
after(() => rmSync(directory, { recursive: true }));

const read = async (pieces: AsyncIterable<Uint8Array>) => Buffer.concat(await Array.fromAsync(pieces));

test('gives back what was put aside, few bytes and many, and leaves no name', async () => {
  for (const count of [0, 1, 50_000]) {
    const spool = spoolsIn(directory, () => {})();
    const lines = Array.from({ length: count }, (_, i) => `line ${i}\n`);
    for (const line of lines) await spool.append(Buffer.from(line));
    assert.equal(String(await read(spool.bytes())), lines.join(''));
    assert.deepEqual(readdirSync(directory), []);
    await spool.close();
    await spool.close();
  }
});

test('takes no space that must stay free', async () => {
  const spool = spoolsIn(directory, () => {
    throw new Error('full');
  })();
  await spool.append(Buffer.alloc(10));
  await assert.rejects(spool.append(Buffer.alloc(100_000)), /full/);
  await spool.close();
});
