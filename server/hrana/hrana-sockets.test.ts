import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { eventually } from '../testing/eventually.ts';
import { testDoor } from '../testing/test-door.ts';
import type { HranaEdgeDeps } from './hrana-edge.ts';
import { HranaSockets } from './hrana-sockets.ts';

const PING_MS = 30_000;

/** Sockets of a database that answers when `answer` resolves; the test controls their pings. */
async function listen(t: TestContext, answer: Promise<Uint8Array>) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const database = { databaseId: 'db-1', accountId: 1 };
  const held = () => ({ add() {}, release() {} });
  const deps = {
    door: testDoor(),
    maxBodyBytes: 1024,
    bodies: { hold: held },
    log: { error: assert.fail },
    databases: {
      find: async () => database,
      receive: () => answer,
      closeSocket: async () => {},
      egress: { count() {} },
    },
  } as unknown as HranaEdgeDeps;
  const sockets = new HranaSockets(deps);
  const server = createServer().on('upgrade', (request, client, head) => {
    sockets.upgrade(request, { client, head });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    sockets.close();
    server.close();
  });
  return async (autoPong: boolean) => {
    const { port } = server.address() as AddressInfo;
    const socket = new WebSocket(`ws://127.0.0.1:${port}/db/db-1`, ['hrana3'], { autoPong });
    await once(socket, 'open');
    socket.send('{"type":"hello","jwt":null}');
    await once(socket, 'message');
    return socket;
  };
}

/** Pings once, and leaves time for an answer. */
async function ping(t: TestContext, ...seen: readonly WebSocket[]) {
  const pinged = seen.map((socket) => once(socket, 'ping'));
  t.mock.timers.tick(PING_MS);
  await Promise.all(pinged);
  await sleep(100);
}

test('a client that answers no ping is closed at the second, one that does is not', async (t) => {
  const connect = await listen(t, Promise.resolve(Buffer.from('{}')));
  const [silent, alive] = [await connect(false), await connect(true)];
  await ping(t, silent, alive);
  await ping(t, alive);
  await eventually(() => silent.readyState === WebSocket.CLOSED);
  await ping(t, alive);
  assert.equal(alive.readyState, WebSocket.OPEN);
  alive.terminate();
});

test('a client that waits for an answer may miss four pings', async (t) => {
  const { promise, resolve } = Promise.withResolvers<Uint8Array>();
  const connect = await listen(t, promise);
  const waiting = await connect(false);
  waiting.send('{}');
  await sleep(100);
  for (let missed = 0; missed < 4; missed++) await ping(t, waiting);
  assert.equal(waiting.readyState, WebSocket.OPEN);
  t.mock.timers.tick(PING_MS);
  await eventually(() => waiting.readyState === WebSocket.CLOSED);
  resolve(Buffer.from('{}'));
});
