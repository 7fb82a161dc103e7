import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type UnauthenticatedConnection, UnauthenticatedConnections } from './unauthenticated-connections.ts';

function newConnections() {
  let now = 0;
  const ended: string[] = [];
  const unauthenticated = new UnauthenticatedConnections(() => now);
  return {
    unauthenticated,
    ended,
    pass: (ms: number) => {
      now += ms;
    },
    enter: (name: string, host = '10.0.0.1'): UnauthenticatedConnection => {
      const connection = { host, end: () => void ended.push(name) };
      unauthenticated.enter(connection);
      return connection;
    },
  };
}

test('who comes from the address with most is evicted, the oldest first', () => {
  const { unauthenticated, ended, enter } = newConnections();
  enter('alone', '10.0.0.2');
  for (const name of ['a', 'b', 'c']) enter(name);
  for (let i = 0; i < 2; i++) unauthenticated.evict();
  assert.deepEqual(ended, ['a', 'b']);
  assert.equal(unauthenticated.size, 2);
});

test('who looks after the server goes after the silent and those who said one thing', () => {
  const { unauthenticated, ended, pass, enter } = newConnections();
  const monitors = ['m1', 'm2'].map((name) => enter(name));
  for (const monitor of monitors) unauthenticated.heard(monitor);
  pass(5000);
  for (const monitor of monitors) unauthenticated.heard(monitor);
  for (let i = 0; i < 10; i++) unauthenticated.heard(enter(`heard${i}`));
  for (let i = 0; i < 10; i++) enter(`silent${i}`);
  for (let i = 0; i < 16; i++) unauthenticated.evict();
  assert.ok(!ended.some((name) => name.startsWith('m')), ended.join());
  assert.deepEqual([ended.includes('silent0'), ended.includes('heard0')], [true, true]);
  assert.ok(!ended.includes('heard9'));
});

test('one that has logged in, or is gone, is no connection', () => {
  const { unauthenticated, ended, enter } = newConnections();
  const user = enter('user');
  unauthenticated.leave(user);
  unauthenticated.leave(user);
  unauthenticated.heard(user);
  unauthenticated.evict();
  assert.deepEqual([ended, unauthenticated.size], [[], 0]);
});
