import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../platform/clock.ts';
import { isAppError } from '../platform/errors.ts';
import { DiskShares } from './disk-shares.ts';

const GIB = 2 ** 30;
const [ATTACKER, VICTIM, TRUSTED] = [1, 2, 3];

function open(percent = 50) {
  const clock = new FakeClock(0);
  const disk = { totalBytes: 100 * GIB, freeBytes: 60 * GIB };
  let looks = 0;
  const trusted = async () => {
    looks++;
    return new Set([TRUSTED]);
  };
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const shares = new DiskShares({ clock, percent, disk: () => disk, trusted, onError });
  const objects = new Map<number, number>();
  shares.count(() => objects, { isObjects: true });
  const kinds = [new Map<number, number>(), new Map<number, number>(), new Map<number, number>()];
  for (const kind of kinds) shares.count(() => kind);
  /** Later, when the use of all accounts is counted again. */
  const over = async () => {
    clock.advance(5000);
    return [...(await shares.over())];
  };
  return { clock, disk, shares, objects, kinds, over, errors, looks: () => looks };
}

const refused = (work: Promise<void>) => assert.rejects(work, (error) => isAppError(error, 'out_of_space'));

test('objects, databases and machines of an account count together once the disk fills', async () => {
  const { disk, shares, objects, kinds, over, looks } = open();
  for (const kind of kinds) {
    kind.set(ATTACKER, 5 * GIB);
    kind.set(TRUSTED, 10 * GIB);
  }
  objects.set(ATTACKER, GIB);
  kinds[0]?.set(VICTIM, GIB);
  assert.deepEqual(await over(), []);
  await shares.assertMayGrow(ATTACKER, GIB);
  assert.equal(looks(), 0, 'nothing is read while more than half of the disk is free');

  // Each account may use a quarter of half of the disk: 12.5 GB.
  disk.freeBytes = 49 * GIB;
  assert.deepEqual(await over(), [ATTACKER]);
  await assert.rejects(shares.assertRoom(ATTACKER, 1), ({ message }: Error) => {
    return /your objects, databases and machines use 16\.0 of the 12\.5 GB/.test(message);
  });
  await assert.rejects(shares.assertMayGrow(ATTACKER, 1), ({ message }: Error) => {
    return /your databases and machines use 15\.0 of the 12\.5 GB/.test(message);
  });
  await shares.assertMayGrow(VICTIM, GIB);
  await shares.assertMayGrow(TRUSTED, 20 * GIB);
});

test('what was admitted counts at once, and what may come is only asked for', async () => {
  const { disk, shares, kinds, clock } = open();
  disk.freeBytes = 49 * GIB;
  kinds[1]?.set(ATTACKER, 4 * GIB);
  await shares.assertRoom(ATTACKER, 8 * GIB);
  await shares.assertRoom(ATTACKER, 8 * GIB);
  await shares.assertMayGrow(ATTACKER, 8 * GIB);
  await refused(shares.assertRoom(ATTACKER, GIB));
  await refused(shares.assertMayGrow(ATTACKER, GIB));
  await shares.assertMayGrow(VICTIM, GIB);
  // It was never stored.
  clock.advance(5000);
  await shares.assertMayGrow(ATTACKER, GIB);
});

test('all accounts without granted credits together have half of the disk, the largest wait first', async () => {
  const { disk, shares, kinds, over } = open();
  disk.freeBytes = 10 * GIB;
  for (let id = 10; id < 15; id++) kinds[0]?.set(id, 11 * GIB);
  kinds[0]?.set(VICTIM, GIB);
  assert.deepEqual(await over(), [10, 11, 12, 13, 14]);
  await refused(shares.assertMayGrow(VICTIM, GIB));
});

test('an account that filled half of the disk alone is refused, and others have their shares', async () => {
  const { disk, shares, kinds, over } = open();
  kinds[0]?.set(ATTACKER, 51 * GIB);
  disk.freeBytes = 49 * GIB;
  assert.deepEqual(await over(), [ATTACKER]);
  await refused(shares.assertMayGrow(ATTACKER, 1));
  await shares.assertMayGrow(VICTIM, 12 * GIB);
  await refused(shares.assertMayGrow(VICTIM, GIB));
});

test('a little is had by each account, also when the shares of all are taken', async () => {
  const { disk, shares, kinds } = open();
  disk.freeBytes = 10 * GIB;
  for (let id = 10; id < 15; id++) kinds[0]?.set(id, 11 * GIB);
  await shares.assertMayGrow(VICTIM, GIB);
  await refused(shares.assertMayGrow(VICTIM, GIB));
});

test('with 100 percent nobody keeps to a share', async () => {
  const { disk, shares, kinds, over } = open(100);
  disk.freeBytes = GIB;
  kinds[0]?.set(ATTACKER, 90 * GIB);
  assert.deepEqual(await over(), []);
  await shares.assertMayGrow(ATTACKER, GIB);
});

test('copies of objects, which share their bytes, stop more objects and nothing else', async () => {
  const { disk, shares, objects, kinds, over } = open();
  disk.freeBytes = 49 * GIB;
  for (const id of [ATTACKER, 10, 11, 12]) objects.set(id, 50 * GIB);
  kinds[0]?.set(ATTACKER, 2 * GIB);
  assert.deepEqual(await over(), []);
  await shares.assertMayGrow(ATTACKER, GIB);
  await refused(shares.assertRoom(ATTACKER, 1));
});

test('objects count once they are stored', async () => {
  const { disk, shares } = open();
  disk.freeBytes = 49 * GIB;
  shares.stored(ATTACKER, 12 * GIB);
  await shares.assertRoom(ATTACKER, 2 * GIB);
  shares.stored(ATTACKER, 12 * GIB);
  shares.stored(TRUSTED, 12 * GIB);
  await refused(shares.assertRoom(ATTACKER, GIB));
  await shares.assertRoom(TRUSTED, GIB);
  await shares.assertMayGrow(ATTACKER, GIB);
});

test('a kind that fails keeps its last figures, and the others are counted', async () => {
  const { disk, shares, kinds, over, errors } = open();
  disk.freeBytes = 49 * GIB;
  let isBroken = false;
  shares.count(async () => {
    if (isBroken) throw new Error('ENOENT');
    return new Map([[ATTACKER, 13 * GIB]]);
  });
  assert.deepEqual(await over(), [ATTACKER]);
  isBroken = true;
  kinds[0]?.set(VICTIM, 13 * GIB);
  assert.deepEqual(await over(), [VICTIM, ATTACKER]);
  await refused(shares.assertRoom(ATTACKER, 1));
  assert.match(String(errors[0]), /ENOENT/);
});
