import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { BodyMemory } from './body-memory.ts';

const refused = (error: unknown) => isAppError(error, 'overloaded');

test('an account holds no more than is left for the others', () => {
  const memory = new BodyMemory(100, new FakeClock());
  const one = memory.hold(1);
  one.add(40);
  one.add(10);
  assert.throws(() => one.add(1), refused);
  const other = memory.hold(2);
  other.add(25);
  assert.throws(() => memory.hold(2).add(1), refused);
  memory.hold(3).add(12);
});

test('the first block of an account is taken in wherever it fits', () => {
  const memory = new BodyMemory(100, new FakeClock());
  memory.hold(1).add(90);
  assert.throws(() => memory.hold(2).add(11), refused);
  memory.hold(2).add(10);
});

test('what is released can be had again, once', () => {
  const memory = new BodyMemory(100, new FakeClock());
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

/** A memory limit, and bodies that record when they are cut. */
function arriving(maxBytes: number) {
  const clock = new FakeClock();
  const memory = new BodyMemory(maxBytes, clock);
  const cut: string[] = [];
  const hold = (accountId: number, name: string) =>
    memory.hold(accountId, (error) => {
      assert.ok(refused(error));
      cut.push(name);
    });
  return { clock, memory, cut, hold };
}

test('the slowest body of the account with most is cut for another account', () => {
  const { clock, cut, hold } = arriving(100);
  const slow = hold(1, 'slow');
  slow.add(20);
  clock.advance(1000);
  const fast = hold(1, 'fast');
  fast.add(20);
  const small = hold(2, 'small');
  small.add(30);
  clock.advance(10);
  const other = hold(3, 'other');
  for (let i = 0; i < 3; i++) other.add(8);
  assert.deepEqual(cut, ['slow']);
  assert.throws(
    () => slow.add(1),
    (error) => isAppError(error, 'bad_http'),
  );
  fast.add(1);
});

test('a body that has arrived is not cut, and nobody is cut for an account that holds more', () => {
  const { cut, hold } = arriving(100);
  const whole = hold(1, 'whole');
  whole.add(50);
  whole.arrived();
  hold(2, 'small').add(20);
  const more = hold(3, 'more');
  more.add(15);
  assert.throws(() => more.add(15), refused);
  assert.throws(() => hold(1, 'again').add(1), refused);
  assert.deepEqual(cut, []);
});

test('accounts that fill the memory with bodies that never end do not keep another out', () => {
  const { clock, cut, hold } = arriving(1000);
  const fill = () => {
    for (let accountId = 1; accountId <= 9; accountId++) {
      for (let body = 0; body < 39; body++) {
        try {
          const held = hold(accountId, 'attacker');
          for (let i = 0; i < 20; i++) held.add(1);
        } catch (error) {
          assert.ok(refused(error));
        }
        clock.advance(1);
      }
    }
  };
  for (let round = 0; round < 5; round++) {
    fill();
    const victim = hold(10, 'victim');
    for (let i = 0; i < 50; i++) victim.add(1);
    victim.arrived();
    victim.release();
  }
  assert.ok(!cut.includes('victim'));
});
