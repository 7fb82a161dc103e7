import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { HostAddresses } from './host-addresses.ts';

/** Outside the addresses of Cloudlet's machines, and used by this process only. */
const ADDRESS = `127.76.${process.pid % 256}.9`;

test('an address where another program listens is not free; one that listens everywhere takes no address', async () => {
  const addresses = new HostAddresses();
  const other = createServer().listen(8080, ADDRESS);
  await once(other, 'listening');
  assert.equal(await addresses.isFree(ADDRESS, [8080]), false);
  const wildcard = createServer().listen(0, '0.0.0.0');
  await once(wildcard, 'listening');
  const { port } = wildcard.address() as AddressInfo;
  assert.equal(await addresses.isFree(ADDRESS, [port]), true);
  assert.equal(await addresses.isFree('192.0.2.1', [port]), false);
  for (const server of [other, wildcard]) await new Promise((resolve) => server.close(resolve));
  assert.equal(await addresses.isFree(ADDRESS, [8080]), true);
});

test("a block of addresses is one cloud's until it ends", async () => {
  const base = ADDRESS.replace(/9$/, '0');
  const [addresses, second] = [new HostAddresses(), new HostAddresses()];
  assert.deepEqual(await Promise.all([addresses.claim(base), addresses.claim(base)]), [true, true]);
  assert.equal(await second.claim(base), false);
  // Not an address of this host: no program can bind it, so none is kept from it.
  assert.equal(await second.claim('192.0.2.0'), true);
  await addresses.close();
  assert.equal(await second.claim(base), true);
  await second.close();
});
