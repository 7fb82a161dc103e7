import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { PublishedConnections } from './published-connections.ts';

const MAX = 10;
const server = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1');
await once(server, 'listening');
const opened: Socket[] = [];
after(() => {
  for (const socket of opened) socket.destroy();
  server.close();
});

async function guest(): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
  opened.push(socket);
  await once(socket, 'connect');
  return socket;
}

function newConnections() {
  const sent: [string, number][] = [];
  const errors: unknown[] = [];
  const connections = new PublishedConnections(
    {
      descriptors: { assertFree: () => {} },
      maxConnections: 15,
      sent: { note: (vmId, bytes) => void sent.push([vmId, bytes]) },
      onError: (_vmId, _what, error) => void errors.push(error),
    },
    MAX,
  );
  const visit = (source: string, accountId = 1) =>
    connections.dial({ accountId, vmId: `vm-${accountId}`, source }, guest);
  return { connections, visit, sent, errors };
}

test('a visitor who holds all places gives way to others, until all have their share', async () => {
  const { visit } = newConnections();
  const hostile = await Promise.all(Array.from({ length: MAX + 5 }, () => visit('6.6.6.6')));
  assert.equal(hostile.filter((socket) => socket !== null).length, MAX);
  const [first] = hostile;
  const honest = await visit('1.1.1.1');
  assert.ok(honest !== null);
  assert.equal(first?.destroyed, true, 'the oldest goes');
  for (let more = 0; more < 4; more++) assert.ok((await visit('1.1.1.1')) !== null, String(more));
  // Five each: neither has more than the other.
  assert.equal(await visit('1.1.1.1'), null);
  assert.equal(await visit('6.6.6.6'), null);
  assert.ok((await visit('2.2.2.2')) !== null);
  assert.equal(honest.destroyed, false, 'both had most; the oldest of all goes');
});

test('another account is not concerned, and places come back', async () => {
  const { visit } = newConnections();
  const all = await Promise.all(Array.from({ length: MAX }, () => visit('6.6.6.6')));
  assert.equal(await visit('6.6.6.6'), null);
  assert.ok((await visit('6.6.6.6', 2)) !== null);
  all[3]?.destroy();
  await once(all[3] as Socket, 'close');
  assert.ok((await visit('6.6.6.6')) !== null);
  assert.equal(await visit('6.6.6.6'), null);
});

test('a place that is given away while its connection is made leads nowhere', async () => {
  const { connections, visit } = newConnections();
  const made = Array.from({ length: MAX }, () => Promise.withResolvers<Socket>());
  const slow = made.map(({ promise }) =>
    connections.dial({ accountId: 1, vmId: 'vm-1', source: '6.6.6.6' }, () => promise),
  );
  assert.ok((await visit('1.1.1.1')) !== null);
  for (const { resolve } of made) resolve(await guest());
  const sockets = await Promise.all(slow);
  assert.deepEqual(
    sockets.map((socket) => socket === null),
    [true, ...Array.from({ length: MAX - 1 }, () => false)],
  );
  assert.equal((await made[0]?.promise)?.destroyed, true);
});

test('an account with all places of the cloud gives way to others', async () => {
  const { visit } = newConnections();
  for (let at = 0; at < MAX; at++) assert.ok((await visit(`1.1.1.${at}`, 1)) !== null);
  for (let at = 0; at < 7; at++) assert.ok((await visit(`1.1.1.${at}`, 2)) !== null, String(at));
  assert.ok((await visit('2.2.2.2', 3)) !== null);
  assert.equal(await visit('1.1.1.9', 2), null);
});
