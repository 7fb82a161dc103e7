import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { TestDocuments } from '../../../../../libs/mongo/testing/document-database.ts';

const CHILD = fileURLToPath(new URL('../../../../testing/documents-child.ts', import.meta.url));
const ROUNDS = 6;

/** Kills a writer in the middle of its work; returns the last number that it reported. */
async function writeAndKill(file: string, { from, until }: { from: number; until: number }): Promise<number> {
  const child = spawn(process.execPath, [CHILD, file, String(from)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  let last = from - 1;
  for await (const line of createInterface({ input: child.stdout })) {
    last = Number(line);
    if (last >= until) child.kill('SIGKILL');
  }
  const [code, signal] = await ended;
  assert.equal(signal, 'SIGKILL', `ended by itself with ${code}`);
  return last;
}

test('what was acknowledged is there after kill -9, with its keys', async (t) => {
  const documents = new TestDocuments(t);
  let next = 0;
  const unheard = new Set<number>();
  for (let round = 0; round < ROUNDS; round++) {
    documents.database.close();
    const last = await writeAndKill(documents.file, { from: next, until: next + 20 + round * 7 });
    documents.open();
    const found = documents.find('people', {}, { sort: { _id: 1 }, batchSize: 10_000 });
    // One more may have been in transit.
    assert.ok(found.length === last + 1 || found.length === last + 2);
    if (found.length === last + 2) unheard.add(last + 1);
    found.forEach(({ turns, ...person }, index) => {
      assert.deepEqual(person, { _id: index, mail: `${index}@example.com` });
      assert.ok(turns === 1 || unheard.has(index));
    });
    assert.deepEqual(documents.ids('people', { mail: { $gte: '' } }).length, found.length);
    for (const { _id, mail } of found) assert.deepEqual(documents.ids('people', { mail }), [_id]);
    assert.equal(documents.codeOf({ insert: 'people', documents: [{ mail: '0@example.com' }] }), 11000);
    assert.equal(documents.run({ count: 'people' }).n, found.length);
    next = found.length;
  }
});
