import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAppError } from '../platform/errors.ts';
import { BodyMemory } from './body.ts';

const refused = (error: unknown) => isAppError(error, 'overloaded');

test('an account holds no more than is left for the others', () => {
  const memory = new BodyMemory(100);
  const one = memory.hold(1);
  one.add(40);
  one.add(10);
  assert.throws(() => one.add(1), refused);
  const other = memory.hold(2);
  other.add(25);
  assert.throws(() => memory.hold(2).add(1), refused);
  memory.hold(3).add(12);
});

test('the first body of an account is taken in wherever it fits', () => {
  const memory = new BodyMemory(100);
  memory.hold(1).add(90);
  assert.throws(() => memory.hold(2).add(11), refused);
  memory.hold(2).add(10);
});

test('what is released can be had again, once', () => {
  const memory = new BodyMemory(100);
  for (let i = 0; i < 10; i++) {
    const held = memory.hold(1);
    held.add(90);
    held.release();
    held.release();
    assert.throws(
      () => held.add(1),
      (error) => isAppError(error, 'bad_http'),
    );
  }
  memory.hold(2).add(100);
});
