import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../platform/clock.ts';
import { eventually } from '../../testing/eventually.ts';
import { type PartLease, PartMemory } from './part-memory.ts';

function newMemory(limitBytes: number) {
  const clock = new FakeClock();
  const memory = new PartMemory({ limitBytes, clock });
  /** In the order in which they were granted. */
  const granted: string[] = [];
  const evicted: string[] = [];
  const leases = new Map<string, PartLease>();
  const take = (name: string, owner: number, bytes = 1) => {
    const evict = () => {
      evicted.push(name);
      leases.get(name)?.release();
    };
    void memory.take({ bytes, owner, evict }).then((lease) => {
      granted.push(name);
      leases.set(name, lease);
    });
  };
  return { clock, memory, granted, evicted, leases, take };
}

const turn = () => new Promise(setImmediate);

test('no more than the limit is given out, and the owner who has least comes first', async () => {
  const { memory, granted, leases, take } = newMemory(3);
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) take(name, 1);
  take('b1', 2);
  take('c1', 3);
  await turn();
  assert.deepEqual(granted, ['a1', 'a2', 'a3']);
  assert.equal(memory.usedBytes, 3);
  leases.get('a1')?.release();
  leases.get('a1')?.release();
  await turn();
  assert.deepEqual(granted.slice(3), ['b1']);
  leases.get('a2')?.release();
  leases.get('a3')?.release();
  await turn();
  assert.deepEqual(granted.slice(4), ['c1', 'a4']);
  assert.equal(memory.usedBytes, 3);
});

test('a part larger than the limit gets all of it, alone', async () => {
  const { memory, granted, leases, take } = newMemory(3);
  take('small', 1);
  take('huge', 2, 100);
  await turn();
  assert.deepEqual(granted, ['small']);
  leases.get('small')?.release();
  await turn();
  assert.deepEqual(granted, ['small', 'huge']);
  assert.equal(memory.usedBytes, 3);
});

test('a slow part ends when another owner waits, and not while nobody does', async () => {
  const { clock, granted, evicted, leases, take } = newMemory(2);
  take('a1', 1);
  take('a2', 1);
  await turn();
  leases.get('a1')?.filled();
  clock.advance(6000);
  take('b1', 2);
  // The first is being sent to S3 and ends by itself.
  await eventually(() => granted.includes('b1'));
  assert.deepEqual(evicted, ['a2']);
});

test('an owner who waits for himself has the patience of all', async () => {
  const { clock, granted, evicted, take } = newMemory(2);
  take('a1', 1, 2);
  await turn();
  clock.advance(29_000);
  take('a2', 1, 2);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  assert.deepEqual(evicted, []);
  clock.advance(2000);
  await eventually(() => granted.includes('a2'));
  assert.deepEqual(evicted, ['a1']);
});
