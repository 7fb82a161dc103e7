import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SharedSlots } from './shared-slots.ts';

test('with all taken, whoever has few gets a slot of whoever has most, until they have as many', () => {
  const slots = new SharedSlots<string>(10);
  const lost: string[] = [];
  const take = (owner: string, name = owner) => slots.take(owner, () => lost.push(name));
  for (let at = 0; at < 10; at++) assert.ok(take('many', `many ${at}`) !== null);
  assert.equal(take('many'), null);
  for (let at = 0; at < 5; at++) assert.ok(take('few') !== null, String(at));
  assert.deepEqual(lost, ['many 0', 'many 1', 'many 2', 'many 3', 'many 4']);
  assert.equal(take('few'), null);
  assert.equal(take('many'), null);
  assert.ok(take('new') !== null);
  assert.equal(slots.size, 10);
});

test('a slot is given back once', () => {
  const slots = new SharedSlots<number>(1);
  const back = slots.take(1, () => assert.fail());
  assert.equal(
    slots.take(1, () => {}),
    null,
  );
  back?.();
  assert.ok(slots.take(1, () => {}) !== null);
  back?.();
  assert.equal(slots.size, 1);
});
