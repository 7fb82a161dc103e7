/** Keys lent to machines: to which, how many, and for how long. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Call, Principal } from '../../calls/principal.ts';
import { Changes } from '../../metadata/change.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import { LentKeys } from './lent-keys.ts';

/** A key that ssh-keygen could have made. */
function keyOf(number: number, comment = 'me@home'): string {
  const type = Buffer.from('ssh-ed25519');
  const inner = Buffer.concat([
    Buffer.from([0, 0, 0, 11]),
    type,
    Buffer.from([0, 0, 0, 32]),
    Buffer.alloc(32, number),
  ]);
  return `ssh-ed25519 ${inner.toString('base64')} ${comment}`;
}
const line = (number: number) => keyOf(number).replace(/ me@home$/, '');

function newLentKeys() {
  const state = {
    now: 0,
    events: [] as unknown[],
    commits: [] as unknown[][],
    ended: new Set<string>(),
    isStored: true,
  };
  const commit = async (statements: unknown[]) => {
    if (!state.isStored) throw new Error('the disk is full');
    state.commits.push(statements);
    state.events.push(...statements);
  };
  const lent = new LentKeys({
    clock: { now: () => state.now, monotonic: () => state.now } as never,
    changes: new Changes({ metadata: { commit } as never }),
    announce: ((event: unknown) => [event]) as never,
    find: (async (caller: Principal, vmId: string) => {
      const account_id = Number(vmId.split('-')[1]);
      if (caller.accountId !== account_id) throw new AppError('vm_not_found', 'You have no such machine');
      return {
        vm_id: vmId,
        account_id,
        name: 'web',
        state: 'running',
        ssh_keys: JSON.stringify([keyOf(99, 'x')]),
      };
    }) as never,
    isCurrent: ({ credentialId }) => !state.ended.has(credentialId),
  });
  return { lent, state };
}
const caller = (accountId: number, credentialId = 'key-a'): Call => ({
  principal: { accountId, credentialId, via: 'key' } as Principal,
  record: () => [],
});

test('a lent key is told in one commit with the entry of the call', async () => {
  const { lent, state } = newLentKeys();
  const entry = { sql: 'the entry', params: [] };
  await lent.lend({ ...caller(1), record: () => [entry] }, 'vm-1-a', keyOf(1));
  assert.equal(state.commits.length, 1);
  assert.deepEqual(state.commits[0]?.slice(1), [entry]);
});

test('a key opens one machine for two minutes, and is told once', async () => {
  const { lent, state } = newLentKeys();
  const { expires_at, fingerprint } = await lent.lend(caller(1), 'vm-1-a', keyOf(1));
  assert.equal(expires_at, '1970-01-01 00:02:00');
  assert.match(fingerprint, /^SHA256:[A-Za-z0-9+/]{43}$/);
  assert.deepEqual(await lent.of(1, 'vm-1-a'), [line(1)]);
  assert.deepEqual(await lent.of(1, 'vm-1-b'), []);
  assert.deepEqual(await lent.of(2, 'vm-1-a'), []);
  for (let i = 0; i < 50; i++) await lent.lend(caller(1), 'vm-1-a', keyOf(1));
  assert.equal(state.events.length, 1);
  await lent.lend(caller(1, 'key-b'), 'vm-1-a', keyOf(1));
  assert.equal(state.events.length, 2, 'somebody else');
  state.now = 119_999;
  assert.equal((await lent.of(1, 'vm-1-a')).length, 1);
  state.now = 120_000;
  assert.deepEqual(await lent.of(1, 'vm-1-a'), []);
});

test('a key of the machine itself is not lent, and no other line is a key', async () => {
  const { lent, state } = newLentKeys();
  assert.equal((await lent.lend(caller(1), 'vm-1-a', keyOf(99))).expires_at, null);
  assert.deepEqual([await lent.of(1, 'vm-1-a'), state.events], [[], []]);
  for (const bad of ['', 'ssh-ed25519 AAAA', `command="x" ${keyOf(1)}`, `${line(1)} a\n${line(2)}`])
    await assert.rejects(
      lent.lend(caller(1), 'vm-1-a', bad),
      (error) => isAppError(error, 'invalid_request'),
      bad,
    );
  await assert.rejects(lent.lend(caller(2), 'vm-1-a', keyOf(1)), (error) =>
    isAppError(error, 'vm_not_found'),
  );
});

test('it ends with the API key that lent it, and begins when its event is stored', async () => {
  const { lent, state } = newLentKeys();
  await lent.lend(caller(1), 'vm-1-a', keyOf(1));
  state.ended.add('key-a');
  assert.deepEqual(await lent.of(1, 'vm-1-a'), []);
  state.isStored = false;
  await assert.rejects(lent.lend(caller(1, 'key-b'), 'vm-1-a', keyOf(2)), /disk is full/);
  assert.deepEqual(await lent.of(1, 'vm-1-a'), []);
});

test('an account has its own bound, and another account is not concerned', async () => {
  const { lent, state } = newLentKeys();
  const isFull = (error: unknown) => isAppError(error, 'overloaded');
  for (let i = 0; i < 10; i++) await lent.lend(caller(1), 'vm-1-a', keyOf(i));
  await assert.rejects(lent.lend(caller(1), 'vm-1-a', keyOf(10)), isFull);
  await lent.lend(caller(1), 'vm-1-a', keyOf(3));
  for (let i = 0; i < 90; i++) await lent.lend(caller(1), `vm-1-${i % 9}`, keyOf(i));
  await assert.rejects(lent.lend(caller(1), 'vm-1-z', keyOf(1)), isFull);
  await lent.lend(caller(2), 'vm-2-a', keyOf(1));
  assert.deepEqual(await lent.of(2, 'vm-2-a'), [line(1)]);
  state.now = 120_000;
  await lent.lend(caller(1), 'vm-1-z', keyOf(1));
});

test('callers who lend the same key in turn write a bounded number of events', async () => {
  const { lent, state } = newLentKeys();
  const isFull = (error: unknown) => isAppError(error, 'overloaded');
  for (let i = 0; i < 200; i++) await lent.lend(caller(1, `key-${i % 2}`), 'vm-1-a', keyOf(1));
  await assert.rejects(lent.lend(caller(1, 'key-0'), 'vm-1-a', keyOf(1)), isFull);
  assert.equal(state.events.length, 200);
  // The last loan remains, and another account is not affected.
  assert.deepEqual(await lent.of(1, 'vm-1-a'), [line(1)]);
  await lent.lend(caller(2), 'vm-2-a', keyOf(1));
  state.now = 1000;
  await lent.lend(caller(1, 'key-0'), 'vm-1-a', keyOf(1));
  await assert.rejects(lent.lend(caller(1, 'key-1'), 'vm-1-a', keyOf(1)), isFull);
});
