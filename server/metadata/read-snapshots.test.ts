import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReadSnapshots } from './read-snapshots.ts';

function countedSnapshots(limitMs?: number) {
  const counts = { open: 0, most: 0 };
  const snapshots = new ReadSnapshots(() => {
    counts.open++;
    counts.most = Math.max(counts.most, counts.open);
    const end = () => {
      counts.open--;
    };
    return { reads: { get: () => undefined, all: () => [] }, end };
  }, limitMs);
  return { counts, snapshots };
}

test('two snapshots are open at once, and others wait', async () => {
  const { counts, snapshots } = countedSnapshots();
  const work = async () => {
    await new Promise(setImmediate);
    return counts.open;
  };
  await Promise.all(Array.from({ length: 9 }, () => snapshots.run(work)));
  assert.deepEqual(counts, { open: 0, most: 2 });
});

test('a snapshot that lasts too long ends, and its next read says so', async () => {
  const { counts, snapshots } = countedSnapshots(5);
  const late = snapshots.run(async (reads) => {
    while (counts.open > 0) await new Promise((resolve) => setTimeout(resolve, 1));
    return reads.all('SELECT 1');
  });
  await assert.rejects(late, { code: 'overloaded' });
  assert.equal(counts.open, 0, 'ended once');
});
