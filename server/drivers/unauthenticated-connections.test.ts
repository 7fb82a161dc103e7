import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Stranger, Strangers } from './unauthenticated-connections.ts';

function newStrangers() {
  let now = 0;
  const ended: string[] = [];
  const strangers = new Strangers(() => now);
  return {
    strangers,
    ended,
    pass: (ms: number) => {
      now += ms;
    },
    enter: (name: string, host = '10.0.0.1'): Stranger => {
      const stranger = { host, end: () => void ended.push(name) };
      strangers.enter(stranger);
      return stranger;
    },
  };
}

test('who comes from the address with most is evicted, the oldest first', () => {
  const { strangers, ended, enter } = newStrangers();
  enter('alone', '10.0.0.2');
  for (const name of ['a', 'b', 'c']) enter(name);
  for (let i = 0; i < 2; i++) strangers.evict();
  assert.deepEqual(ended, ['a', 'b']);
  assert.equal(strangers.size, 2);
});

test('who looks after the server goes after the silent and those who said one thing', () => {
  const { strangers, ended, pass, enter } = newStrangers();
  const monitors = ['m1', 'm2'].map((name) => enter(name));
  for (const monitor of monitors) strangers.heard(monitor);
  pass(5000);
  for (const monitor of monitors) strangers.heard(monitor);
  for (let i = 0; i < 10; i++) strangers.heard(enter(`heard${i}`));
  for (let i = 0; i < 10; i++) enter(`silent${i}`);
  for (let i = 0; i < 16; i++) strangers.evict();
  assert.ok(!ended.some((name) => name.startsWith('m')), ended.join());
  assert.deepEqual([ended.includes('silent0'), ended.includes('heard0')], [true, true]);
  assert.ok(!ended.includes('heard9'));
});

test('one that has logged in, or is gone, is no stranger', () => {
  const { strangers, ended, enter } = newStrangers();
  const user = enter('user');
  strangers.leave(user);
  strangers.leave(user);
  strangers.heard(user);
  strangers.evict();
  assert.deepEqual([ended, strangers.size], [[], 0]);
});
