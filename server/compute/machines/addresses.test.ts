import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAppError } from '../../platform/errors.ts';
import { ScriptedIngress } from '../../testing/scripted-ingress.ts';
import { AddressPool } from './addresses.ts';

const HOST = new ScriptedIngress();

function poolOf(network: string, taken: readonly string[] = [], host: ScriptedIngress = HOST): AddressPool {
  return new AddressPool({ network, taken, host });
}

async function take(pool: AddressPool, count: number): Promise<string[]> {
  const addresses: string[] = [];
  while (addresses.length < count) addresses.push(await pool.take([22]));
  return addresses;
}

const isNone = (error: unknown) => isAppError(error, 'no_free_address');

test('a small network: all but its own address and the broadcast, each once', async () => {
  const pool = poolOf('10.1.2.8/29');
  const hosts = ['10.1.2.9', '10.1.2.10', '10.1.2.11', '10.1.2.12', '10.1.2.13', '10.1.2.14'];
  assert.deepEqual(await take(pool, 6), hosts);
  await assert.rejects(pool.take([22]), isNone);
  pool.giveBack('10.1.2.11');
  assert.equal(await pool.take([22]), '10.1.2.11');
});

test('a large network: no .0 and no .255, and 254 of each 256', async () => {
  const pool = poolOf('127.80.77.3/16');
  const all = await take(pool, 254 * 256);
  assert.equal(new Set(all).size, all.length);
  assert.equal(all[0], '127.80.0.1');
  assert.equal(all.at(-1), '127.80.255.254');
  assert.ok(all.every((address) => /^127\.80\.\d+\.\d+$/.test(address) && !/\.(?:0|255)$/.test(address)));
  await assert.rejects(pool.take([22]), isNone);
});

test('what machines have is not given again, and an address rests before it is', async () => {
  const pool = poolOf('127.80.0.0/16', ['127.80.0.1', '192.168.7.7', '127.80.0.3']);
  assert.deepEqual(await take(pool, 2), ['127.80.0.4', '127.80.0.5']);
  pool.giveBack('127.80.0.4');
  assert.equal(await pool.take([22]), '127.80.0.6');
});

test('giving back what is not of the pool does nothing', async () => {
  const pool = poolOf('10.0.0.0/30');
  pool.giveBack('192.168.7.7');
  assert.deepEqual(await take(pool, 2), ['10.0.0.1', '10.0.0.2']);
});

test('an address where another program answers, and a block of another cloud, are passed over', async () => {
  const host = new ScriptedIngress();
  const pool = poolOf('127.80.0.0/16', [], host);
  host.foreign.add('127.80.0.2');
  assert.deepEqual(await take(pool, 2), ['127.80.0.1', '127.80.0.3']);
  host.foreign.add('127.80.0.0').add('127.80.1.0');
  assert.equal(await pool.take([22]), '127.80.2.1');
  assert.deepEqual(await pool.claimTaken(), ['127.80.0.0']);
});

test('a network that another cloud on the host has: the refusal says what to do', async () => {
  const host = new ScriptedIngress();
  host.foreign.add('10.1.2.0');
  const pool = poolOf('10.1.2.0/24', [], host);
  await assert.rejects(
    pool.take([22]),
    (error) => isNone(error) && /change CLOUDLET_VM_POOL/.test(String((error as { hint?: string }).hint)),
  );
  host.foreign.clear();
  assert.match(await pool.take([22]), /^10\.1\.2\./);
});

test('many at once get an address each', async () => {
  const pool = poolOf('127.80.0.0/16');
  const all = await Promise.all(Array.from({ length: 300 }, () => pool.take([22])));
  assert.equal(new Set(all).size, 300);
});
