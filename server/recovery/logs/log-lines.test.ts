/** The parts of an archived log that are needed for a moment, and those that may be removed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partsUntil } from '../../databases/points/moments.ts';
import { type LogLine, reachOf, surplus } from './log-lines.ts';

/** Parts of ten bytes, each archived a second after the previous one. */
function line(name: string, bases: readonly number[], parts: readonly number[]): LogLine {
  return {
    line: name,
    bases: bases.map((at) => ({ from: BigInt(at * 10), at: at * 1000 + 500 })),
    parts: parts.map((at) => ({ from: BigInt(at * 10), to: BigInt(at * 10 + 10), at: at * 1000 + 1000 })),
  };
}

const ALL = { since: 0, maxBytes: 1000n, isGone: false };
const base = { from: 20n, at: 2500 };
const whole = line('a', [2, 6], [0, 1, 2, 3, 4, 5, 6, 7, 8]);

test('the log reaches up to its first gap', () => {
  assert.deepEqual(reachOf(base, whole), { to: 90n, at: 9000 });
  const broken = line('a', [2], [0, 1, 2, 3, 5, 6]);
  assert.deepEqual(reachOf(base, broken), { to: 40n, at: 4000 });
  assert.deepEqual(reachOf(base, line('a', [2], [3])), { to: 20n, at: 2500 });
  const twice = line('a', [2], [2, 2, 3]);
  assert.deepEqual(reachOf(base, twice), { to: 40n, at: 4000 });
});

test('a moment needs the log up to the first part that was archived after it', () => {
  const endOf = (at: number) => partsUntil(whole, base, at).at(-1)?.to;
  assert.deepEqual([2600, 3000, 3001, 8999, 9000, 99_000].map(endOf), [30n, 30n, 40n, 90n, 90n, 90n]);
  assert.equal(partsUntil(whole, base, 5000)[0]?.from, 20n);
});

test('the newest base copy before the oldest kept moment stays, with the log since', () => {
  const names = (lines: readonly LogLine[]) =>
    lines.map(({ line: name, bases, parts }) => [name, bases.length, parts.length]);
  assert.deepEqual(names(surplus([whole], ALL)), [['a', 0, 2]]);
  assert.deepEqual(names(surplus([whole], { ...ALL, since: 6499 })), [['a', 0, 2]]);
  assert.deepEqual(names(surplus([whole], { ...ALL, since: 6500 })), [['a', 1, 6]]);
  const later = line('b', [20], [20, 21]);
  assert.deepEqual(
    names(surplus([whole, later], { ...ALL, since: 7000 })),
    [
      ['a', 1, 6],
      ['b', 0, 0],
    ].slice(0, 1),
  );
  assert.deepEqual(names(surplus([whole, later], { ...ALL, since: 30_000 })), [
    ['a', 2, 9],
    ['b', 0, 0],
  ]);
});

test('the oldest goes when a server has more than it may, but never its newest base copy', () => {
  const kept = surplus([whole], { ...ALL, maxBytes: 30n });
  assert.deepEqual(kept[0]?.bases, [base]);
  assert.equal(surplus([whole], { ...ALL, maxBytes: 1n })[0]?.bases.length, 1);
});

test('nothing stays of a server that is gone, after the time', () => {
  assert.deepEqual(surplus([whole], { ...ALL, since: 9001, isGone: true }), [whole]);
  assert.equal(surplus([whole], { ...ALL, since: 9000, isGone: true })[0]?.bases.length, 1);
  assert.deepEqual(surplus([line('c', [], [0, 1])], { ...ALL, since: 9000 }), []);
});
