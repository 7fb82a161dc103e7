import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Bus } from '../metadata/bus.ts';
import { eventually } from '../testing/eventually.ts';
import { NOBODY } from './principal.ts';
import { type Changed, Updates } from './updates.ts';

const ADA = { ...NOBODY, accountId: 1, via: 'key' as const, scopes: ['*' as const] };

function watched() {
  const bus = new Bus();
  const updates = new Updates({ maxPerAccount: 10, bus });
  const notified: (readonly Changed[] | 'lost')[] = [];
  const stop = updates.watch(ADA, {
    changed: (things) => notified.push(things),
    lost: () => notified.push('lost'),
  });
  const tell = (id: string) => bus.changed({ accountId: 1, kind: 'vm', id });
  return { notified, stop, tell };
}

test('what changes several times within a moment is reported once', async () => {
  const { notified, tell } = watched();
  for (const id of ['vm-a', 'vm-b', 'vm-a']) tell(id);
  await eventually(() => notified.length > 0);
  assert.deepEqual(notified, [
    [
      { kind: 'vm', id: 'vm-a' },
      { kind: 'vm', id: 'vm-b' },
    ],
  ]);
  tell('vm-a');
  await eventually(() => notified.length > 1);
});

test('of more than 200 things none is named', async () => {
  const { notified, tell } = watched();
  for (let count = 0; count <= 200; count++) tell(`vm-${count}`);
  await eventually(() => notified.length > 0);
  assert.deepEqual(notified, ['lost']);
});

test('who has left is notified of nothing', async () => {
  const { notified, stop, tell } = watched();
  const other = watched();
  tell('vm-a');
  stop();
  tell('vm-b');
  other.tell('vm-c');
  await eventually(() => other.notified.length > 0);
  assert.deepEqual(notified, []);
});

test('commits are listened to while somebody watches, and again later', async () => {
  let listening = 0;
  const bus = {
    onChange: () => {
      listening++;
      return () => void listening--;
    },
  };
  const updates = new Updates({ maxPerAccount: 10, bus });
  const watch = (accountId: number) =>
    updates.watch({ ...ADA, accountId }, { changed: () => {}, lost: () => {} });
  for (let times = 0; times < 2; times++) {
    assert.equal(listening, 0);
    const [one, another, third] = [watch(1), watch(1), watch(2)];
    assert.equal(listening, 1);
    for (const stop of [one, third]) stop();
    assert.equal(listening, 1);
    another();
    // For a machine that has already stopped.
    another();
  }
  assert.equal(listening, 0);
});
