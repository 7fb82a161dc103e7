import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertFollows, eventOf, nextRow } from './row-change.ts';

const row = {
  account_id: 3,
  name: 'shop',
  region: 'local',
  state: 'ready' as string,
  reason_code: null as string | null,
  reason_message: null as string | null,
  generation: 7,
  state_changed_at: 1000,
};

test('each change counts; only another state has a new time', () => {
  assert.deepEqual(nextRow(row, { name: 'store' }, 2000), { ...row, name: 'store', generation: 8 });
  const suspended = nextRow(row, { state: 'suspended', reason_code: 'x' }, 2000);
  assert.deepEqual([suspended.generation, suspended.state_changed_at], [8, 2000]);
});

test('an event has the reason, and calls what is being deleted deleted', () => {
  const deleting = { ...row, state: 'deleting', reason_code: 'gone', reason_message: 'It is gone' };
  assert.deepEqual(eventOf('database.deleted', deleting, { at: 5, database_id: 'db-1' }), {
    accountId: 3,
    type: 'database.deleted',
    at: 5,
    data: {
      database_id: 'db-1',
      name: 'shop',
      region: 'local',
      state: 'deleted',
      reason: { code: 'gone', message: 'It is gone' },
    },
  });
});

test('a state that may not follow is a fault', () => {
  const following = { new: ['ready'], ready: ['gone'], gone: [] } as const;
  assertFollows<keyof typeof following>(following, 'ready', 'ready');
  assertFollows<keyof typeof following>(following, 'new', 'ready');
  for (const [before, after] of [
    ['ready', 'new'],
    ['new', 'gone'],
  ] as const) {
    const check = () => assertFollows<keyof typeof following>(following, before, after);
    assert.throws(check, new RegExp(`is ${before} cannot become ${after}`));
  }
});
