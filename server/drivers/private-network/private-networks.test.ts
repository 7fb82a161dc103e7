import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { PrivateNetworks } from './private-networks.ts';

test('a machine that does not take its connection holds up no other, and is tried again', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-network-'));
  t.after(() => rmSync(folder, { recursive: true }));
  let accepted = 0;
  const guest = createServer((socket) => {
    accepted++;
    socket.on('error', () => {});
  }).listen(join(folder, 'good'));
  const networks = new PrivateNetworks({
    socketOf: (vmId) => ({ path: join(folder, vmId), close: () => {} }),
    services: { find: async () => null, dial: async () => null, uri: async () => null },
    keysOf: async () => [],
    data: () => ({ host: '127.0.0.1', port: 1 }),
    warn: (text) => assert.fail(text),
  });
  t.after(() => networks.close().then(() => guest.close()));
  const member = (vmId: string, last: number) => ({
    vmId,
    accountId: 1,
    run: 'first',
    hostname: vmId,
    mac: `56:00:00:00:00:0${last}`,
    address: `10.80.0.${last}`,
  });
  // Nobody listens there: the connection ends before it began.
  const members = [member('refuses', 1), member('good', 2)];
  for (let round = 0; round < 3; round++) await networks.sync(members);
  assert.equal(accepted, 1);
});
