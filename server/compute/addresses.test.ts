import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAppError } from '../errors.ts';
import { AddressPool } from './addresses.ts';

const take = (pool: AddressPool, count: number) => Array.from({ length: count }, () => pool.take());

test('a small network: all but its own address and the broadcast, each once', () => {
  const pool = new AddressPool('10.1.2.8/29', []);
  const hosts = ['10.1.2.9', '10.1.2.10', '10.1.2.11', '10.1.2.12', '10.1.2.13', '10.1.2.14'];
  assert.deepEqual(take(pool, 6), hosts);
  assert.throws(
    () => pool.take(),
    (error) => isAppError(error, 'no_free_address'),
  );
  pool.giveBack('10.1.2.11');
  assert.equal(pool.take(), '10.1.2.11');
});

test('a large network: no .0 and no .255, and 254 of each 256', () => {
  const pool = new AddressPool('127.80.77.3/16', []);
  const all = take(pool, 254 * 256);
  assert.equal(new Set(all).size, all.length);
  assert.equal(all[0], '127.80.0.1');
  assert.equal(all.at(-1), '127.80.255.254');
  assert.ok(all.every((address) => /^127\.80\.\d+\.\d+$/.test(address) && !/\.(?:0|255)$/.test(address)));
  assert.throws(() => pool.take());
});

test('what machines have is not given again, and an address rests before it is', () => {
  const pool = new AddressPool('127.80.0.0/16', ['127.80.0.1', '192.168.7.7', '127.80.0.3']);
  assert.deepEqual(take(pool, 2), ['127.80.0.4', '127.80.0.5']);
  pool.giveBack('127.80.0.4');
  assert.equal(pool.take(), '127.80.0.6');
});

test('giving back what is not of the pool does nothing', () => {
  const pool = new AddressPool('10.0.0.0/30', []);
  pool.giveBack('192.168.7.7');
  assert.deepEqual(take(pool, 2), ['10.0.0.1', '10.0.0.2']);
});
