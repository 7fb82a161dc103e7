import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAppError } from '../platform/errors.ts';
import { CommitQueue, type WaitingCommit } from './commit-queue.ts';
import type { Statement } from './metadata.ts';
import { StoreFigures } from './store-figures.ts';

const ATTACKER = 1;
const VICTIM = 2;
const MIB = 2 ** 20;

/** A queue before a store that takes batches when the test says so. */
function slowStore() {
  const batches: (readonly WaitingCommit[])[] = [];
  const deps = { clock: { monotonic: () => 0 }, figures: new StoreFigures() };
  const queue = new CommitQueue({ ...deps, send: (batch) => batches.push(batch) });
  return {
    queue,
    /** Ends the batch that is being stored, and resolves with the one that follows. */
    next: async () => {
      for (const { resolve } of batches.at(-1) ?? []) resolve([]);
      queue.done();
      await new Promise((resolve) => setImmediate(resolve));
      return batches.at(-1) ?? [];
    },
  };
}

const commit = (bytes = 0): Statement[] => [{ sql: 'x', params: [new Uint8Array(bytes)] }];

/** Adds commits until one is refused; how many were taken. */
async function flood(queue: CommitQueue, owner: number, bytes = 0): Promise<number> {
  let refusal: unknown;
  for (let taken = 0; ; taken++) {
    queue.add(commit(bytes), owner).catch((error: unknown) => {
      refusal = error;
    });
    await null;
    if (refusal === undefined) continue;
    assert.ok(isAppError(refusal, 'overloaded'), String(refusal));
    return taken;
  }
}

const ownersOf = (batch: readonly WaitingCommit[]) => new Set(batch.map(({ owner }) => owner));

test('an account that floods is refused, not those who come later, and they are in the next batch', async () => {
  const { queue, next } = slowStore();
  assert.equal(await flood(queue, ATTACKER), 20_000);
  const stored = queue.add(commit(), VICTIM);
  const own = queue.add(commit());
  const batch = await next();
  assert.equal(batch.length, 128);
  assert.deepEqual(ownersOf(batch), new Set([ATTACKER, VICTIM, undefined]));
  await next();
  await Promise.all([stored, own]);
});

test('the bytes of one account that floods make room for those of others', async () => {
  const { queue, next } = slowStore();
  assert.equal(await flood(queue, ATTACKER, MIB), 128);
  const stored = queue.add(commit(MIB), VICTIM);
  const batch = await next();
  assert.deepEqual(ownersOf(batch), new Set([ATTACKER, VICTIM]));
  await next();
  await stored;
});

test('thirty accounts that flood share the queue, and leave room for one more', async () => {
  const { queue, next } = slowStore();
  for (let owner = 100; owner < 130; owner++) await flood(queue, owner);
  const stored = queue.add(commit(), VICTIM);
  const batch = await next();
  assert.equal(batch.length, 128);
  assert.ok(ownersOf(batch).size >= 30, `${ownersOf(batch).size} owners`);
  await next();
  await next();
  await stored;
});

test('commits of one account keep their order, and one that is larger than a batch goes', async () => {
  const { queue, next } = slowStore();
  const order: number[] = [];
  for (let at = 0; at < 300; at++) {
    const bytes = at === 150 ? 9 * MIB : 1000;
    void queue.add(commit(bytes), ATTACKER).then(() => order.push(at));
    void queue.add(commit(), VICTIM);
  }
  for (let i = 0; i < 12; i++) await next();
  assert.deepEqual(
    order,
    Array.from({ length: 300 }, (_, at) => at),
  );
});
