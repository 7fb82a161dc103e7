import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newShares } from './connection-shares.ts';

const EACH = 80;
const MOST = { most: 100, least: 0 };

/** `[sessions, maximum]` of each database. */
function shares(of: Readonly<Record<string, readonly [number, number]>>, others = 0, least = 0) {
  const users = new Map(Object.entries(of).map(([name, [sessions, most]]) => [name, { sessions, most }]));
  const sessions = [...users.values()].reduce((sum, user) => sum + user.sessions, others);
  const databases = Object.keys(of).map((database) => ({ database, limits: { connections: EACH } }));
  return Object.fromEntries(newShares(databases, { sessions, users }, { ...MOST, least }));
}

test('a database alone has all of its own, and nothing is written', () => {
  for (const sessions of [0, 1, 79, 80]) assert.deepEqual(shares({ a: [sessions, EACH] }), {});
});

test('several share what there is, and have their own again once it is free', () => {
  assert.deepEqual(shares({ a: [80, EACH], b: [5, EACH] }), { b: 20 });
  assert.deepEqual(shares({ a: [80, EACH], b: [20, 20] }), {});
  assert.deepEqual(shares({ a: [70, EACH], b: [20, 20] }), { b: 30 });
  assert.deepEqual(shares({ a: [10, EACH], b: [20, 30] }), { b: EACH });
  assert.deepEqual(shares({ a: [80, EACH], b: [20, 20], c: [0, EACH] }), { c: 0 });
  assert.deepEqual(shares({ a: [80, EACH], b: [20, 20], c: [0, EACH] }, 0, 1), { c: 1 });
});

test('sessions of other roles count, and a limit that a tenant raised is put back', () => {
  assert.deepEqual(shares({ a: [10, EACH] }, 50), { a: 50 });
  assert.deepEqual(shares({ a: [10, 400] }), { a: EACH });
});
