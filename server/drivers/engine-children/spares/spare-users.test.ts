import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SpareUsers } from './spare-users.ts';

test('an id is one holder only, and the one given back last comes last', () => {
  const users = new SpareUsers({ first: 100, count: 3 });
  assert.deepEqual([users.take(), users.take()], [100, 101]);
  users.release(100);
  assert.deepEqual([users.take(), users.take(), users.take()], [102, 100, undefined]);
  users.release(101);
  assert.equal(users.take(), 101);
});

test('ids of folders from an earlier run are taken', () => {
  const users = new SpareUsers({ first: 100, count: 2 });
  assert.deepEqual(
    [99, 100, 102].map((uid) => users.hold(uid)),
    [false, true, false],
  );
  assert.deepEqual([users.take(), users.take()], [101, undefined]);
});

test('where there are no other users all are ours', () => {
  const users = new SpareUsers(null);
  assert.deepEqual([users.take(), users.take(), users.hold(5)], [null, null, false]);
});
