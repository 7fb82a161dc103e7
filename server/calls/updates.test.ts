import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../testing/eventually.ts';
import { NOBODY } from './principal.ts';
import { type Changed, Updates } from './updates.ts';

const ADA = { ...NOBODY, accountId: 1, via: 'key' as const, scopes: ['*' as const] };

function watched() {
  const updates = new Updates({ maxPerAccount: 10 });
  const told: (readonly Changed[] | 'lost')[] = [];
  const stop = updates.watch(ADA, {
    changed: (things) => told.push(things),
    lost: () => told.push('lost'),
  });
  const tell = (id: string) => updates.tell({ accountId: 1, kind: 'vm', id });
  return { told, stop, tell };
}

test('what changes several times within a moment is told once', async () => {
  const { told, tell } = watched();
  for (const id of ['vm-a', 'vm-b', 'vm-a']) tell(id);
  await eventually(() => told.length > 0);
  assert.deepEqual(told, [
    [
      { kind: 'vm', id: 'vm-a' },
      { kind: 'vm', id: 'vm-b' },
    ],
  ]);
  tell('vm-a');
  await eventually(() => told.length > 1);
});

test('of more than 200 things none is named', async () => {
  const { told, tell } = watched();
  for (let count = 0; count <= 200; count++) tell(`vm-${count}`);
  await eventually(() => told.length > 0);
  assert.deepEqual(told, ['lost']);
});

test('who has left is told nothing', async () => {
  const { told, stop, tell } = watched();
  const other = watched();
  tell('vm-a');
  stop();
  tell('vm-b');
  other.tell('vm-c');
  await eventually(() => other.told.length > 0);
  assert.deepEqual(told, []);
});
