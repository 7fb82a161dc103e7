/** Files of existing clouds belong to these users: a changed number would lock their databases. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SLOTS } from '../programs/client-programs.ts';
import { CLIENT_USERS, serverUsers } from './server-users.ts';

const RANGE = { first: 1_000_000, count: 2 ** 20 };
const END = RANGE.first + RANGE.count;
/** Used by servers and clients of earlier versions: 1 + 8 users for each SQL engine, then 1 + 10. */
const TAKEN_BEFORE = 23;

test('servers of accounts have the user ids that they had when they were made', () => {
  const { ofAccount } = serverUsers(RANGE, false);
  assert.equal(ofAccount('postgresql')(1), END - 67);
  assert.equal(ofAccount('mysql')(1), END - 68);
  assert.equal(ofAccount('postgresql')(1000), END - 2065);
  assert.equal(ofAccount('mysql')(1000), END - 2066);
  const drill = serverUsers(RANGE, true);
  assert.equal(drill.ofAccount('postgresql')(1000), END - 65);
  assert.equal(drill.ofAccount('mysql')(1000), END - 66);
});

test('the users that make data and that run clients have fixed ids, which no data of earlier versions have', () => {
  const { first, ofAccount } = serverUsers(RANGE, false);
  assert.deepEqual(
    (['postgresql', 'mysql', 'mongodb'] as const).map((engine) => END - (first(engine) ?? 0)),
    [34, 45, 46],
  );
  assert.equal(CLIENT_USERS, 10);
  assert.ok(SLOTS <= CLIENT_USERS, 'more clients than users: give an engine a new range, below the others');
  const taken = (['postgresql', 'mysql'] as const).flatMap((engine) =>
    Array.from({ length: 1 + CLIENT_USERS }, (_, at) => (first(engine) ?? 0) + at),
  );
  const all = [...taken, first('mongodb') ?? 0, ofAccount('postgresql')(0) ?? 0, ofAccount('mysql')(0) ?? 0];
  assert.equal(new Set(all).size, all.length, 'two have the same user');
  assert.ok(all.every((uid) => uid < END - TAKEN_BEFORE));
});

test('without other users there are none', () => {
  const { first, ofAccount } = serverUsers(null, false);
  assert.deepEqual([first('postgresql'), ofAccount('mysql')(7)], [null, null]);
});
