import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { datagramFrame, FLAG, ipNumber, segmentFrame } from '../../../libs/net/index.ts';
import { eventually } from '../../testing/eventually.ts';
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
    data: () => ({ host: '127.0.0.1', port: 1, maxConnections: 1 }),
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
  // No program listens there: the connection ends before it began.
  const members = [member('refuses', 1), member('good', 2)];
  for (let round = 0; round < 3; round++) await networks.sync(members);
  assert.equal(accepted, 1);
});

test('machines of one account take the data origin from nobody', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-network-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const origin = createServer((socket) => void socket.on('error', () => {})).listen(0, '127.0.0.1');
  await once(origin, 'listening');
  const heard = new Map<string, string[]>();
  const wires = new Map<string, Socket>();
  const guests = ['greedy', 'other'].map((name) =>
    createServer((wire) => {
      wires.set(
        name,
        wire.on('error', () => {}),
      );
      wire.on('data', (bytes: Buffer) => heard.set(name, [...(heard.get(name) ?? []), ...flagsIn(bytes)]));
    }).listen(join(folder, name)),
  );
  const networks = new PrivateNetworks({
    socketOf: (vmId) => ({ path: join(folder, vmId), close: () => {} }),
    services: { find: async () => null, dial: async () => null, uri: async () => null },
    keysOf: async () => [],
    data: () => ({ host: '127.0.0.1', port: (origin.address() as AddressInfo).port, maxConnections: 4 }),
    warn: (text) => assert.fail(text),
  });
  t.after(async () => {
    await networks.close();
    for (const server of [origin, ...guests]) server.close();
  });
  const members = ['greedy', 'other'].map((vmId, at) => ({
    vmId,
    accountId: at + 1,
    run: 'first',
    hostname: vmId,
    mac: `56:00:00:00:00:0${at + 1}`,
    address: `10.80.0.${at + 1}`,
  }));
  await networks.sync(members);
  const connectFrom = (at: number, fromPort: number) => {
    const link = { from: Buffer.from([0x56, 0, 0, 0, 0, at + 1]), to: Buffer.from('5a0000000001', 'hex') };
    const ends = { from: ipNumber(`10.80.0.${at + 1}`), fromPort, to: ipNumber('10.64.0.2'), toPort: 80 };
    const nothing = Buffer.alloc(0);
    const rest = { seq: 7, ack: 0, flags: FLAG.syn, window: 1000, options: nothing, payload: nothing };
    wires.get(members[at]?.vmId ?? '')?.write(segmentFrame(link, { ...ends, ...rest }));
  };
  const told = (name: string, what: string) => (heard.get(name) ?? []).filter((each) => each === what).length;
  for (let fromPort = 1; fromPort <= 6; fromPort++) connectFrom(0, fromPort);
  await eventually(() => told('greedy', 'opened') === 4 && told('greedy', 'reset') === 2);
  connectFrom(1, 1);
  await eventually(() => told('other', 'opened') === 1);
  assert.equal(told('other', 'reset'), 0);
  await eventually(() => told('greedy', 'reset') === 3);
});

test('a name that cannot be looked up is not said to be absent', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-network-'));
  t.after(() => rmSync(folder, { recursive: true }));
  let wire: Socket | undefined;
  let heard = Buffer.alloc(0);
  const guest = createServer((socket) => {
    wire = socket.on('error', () => {});
    wire.on('data', (bytes: Buffer) => {
      heard = Buffer.concat([heard, bytes]);
    });
  }).listen(join(folder, 'web'));
  const find = async (_: number, name: string) => {
    if (name === 'away') throw new Error('the metadata are away');
    return name === 'shop' ? 1 : null;
  };
  const networks = new PrivateNetworks({
    socketOf: (vmId) => ({ path: join(folder, vmId), close: () => {} }),
    services: { find, dial: async () => null, uri: async () => null },
    keysOf: async () => [],
    data: () => ({ host: '127.0.0.1', port: 1, maxConnections: 1 }),
    warn: (text) => assert.fail(text),
  });
  t.after(() => networks.close().then(() => guest.close()));
  const member = { vmId: 'web', accountId: 1, run: 'first', hostname: 'web', mac: '56:00:00:00:00:01' };
  await networks.sync([{ ...member, address: '10.80.0.1' }]);
  const ask = (name: string) => {
    const labels = [name, 'db', 'internal'].flatMap((label) => [label.length, ...Buffer.from(label)]);
    const payload = Buffer.from([0x12, 0x34, 0x01, 0x20, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1]);
    const link = { from: Buffer.from('560000000001', 'hex'), to: Buffer.from('5a0000000001', 'hex') };
    const ends = { from: ipNumber('10.80.0.1'), fromPort: 7, to: ipNumber('10.64.0.1'), toPort: 53 };
    wire?.write(datagramFrame(link, { ...ends, payload }));
  };
  const hasHeard = (name: string) => heard.includes(Buffer.from([name.length, ...Buffer.from(name)]));
  for (const name of ['away', 'none', 'shop']) ask(name);
  await eventually(() => hasHeard('none') && hasHeard('shop'));
  assert.equal(hasHeard('away'), false);
});

/** TCP flags of the segments in the bytes sent to a guest. */
function flagsIn(bytes: Buffer): string[] {
  const found: string[] = [];
  for (let at = 0; at + 4 <= bytes.length; at += 4 + bytes.readUInt32BE(at)) {
    const flags = bytes[at + 4 + 14 + 20 + 13] ?? 0;
    found.push((flags & FLAG.rst) !== 0 ? 'reset' : (flags & FLAG.syn) !== 0 ? 'opened' : 'other');
  }
  return found;
}
