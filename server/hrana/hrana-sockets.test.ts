import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { TrustedProxies } from '../http/exchange.ts';
import { eventually } from '../testing/eventually.ts';
import { testDoor } from '../testing/test-door.ts';
import type { HranaEdgeDeps } from './hrana-edge.ts';
import { HranaSockets } from './hrana-sockets.ts';

const PING_MS = 30_000;

/** Sockets of a database that answers when `answer` resolves; the test controls their pings. */
async function listen(t: TestContext, answer: Promise<Uint8Array>) {
  const { connect } = await open(t, answer);
  return async (autoPong: boolean) => {
    const socket = await connect({ autoPong });
    socket.send('{"type":"hello","jwt":"1"}');
    await once(socket, 'message');
    return socket;
  };
}

/** `connect`: a socket that has not logged in; rejects when it is refused. */
async function open(
  t: TestContext,
  answer: Promise<Uint8Array>,
  { maxUnauthenticated, maxSockets = 100 }: Partial<HranaEdgeDeps> = {},
) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const held = () => ({ add() {}, release() {} });
  const deps = {
    door: testDoor({ proxies: new TrustedProxies(['127.0.0.1']) }),
    maxBodyBytes: 1024,
    maxUnauthenticated,
    maxSockets,
    bodies: { hold: held },
    log: { error: assert.fail },
    databases: {
      // Passwords are ids of accounts here.
      find: async (_: string, password: string) => ({ databaseId: 'db-1', accountId: Number(password) }),
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
  const { port } = server.address() as AddressInfo;
  const connect = async ({ from = '192.0.2.1', autoPong = true } = {}) => {
    const headers = { 'x-forwarded-for': from };
    const socket = new WebSocket(`ws://127.0.0.1:${port}/db/db-1`, ['hrana3'], { autoPong, headers });
    await once(socket, 'open');
    return socket;
  };
  return { connect };
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

test('a /64 is one source, which keeps nobody else from logging in', async (t) => {
  const never = new Promise<Uint8Array>(() => {});
  const { connect } = await open(t, never);
  for (let i = 0; i < 32; i++) await connect({ from: `2001:db8::${i}` });
  await assert.rejects(connect({ from: '2001:db8::99' }), /503/);
  await connect({ from: '2001:db8:0:1::1' });
});

test('when all places before the log-in are taken, the source with most of them gives one', async (t) => {
  const never = new Promise<Uint8Array>(() => {});
  const { connect } = await open(t, never, { maxUnauthenticated: 4 });
  const greedy: WebSocket[] = [];
  for (let i = 0; i < 4; i++) greedy.push(await connect({ from: '192.0.2.1' }));
  const other = await connect({ from: '192.0.2.2' });
  await eventually(() => greedy[0]?.readyState === WebSocket.CLOSED);
  other.send('{"type":"hello","jwt":null}');
  await once(other, 'message');
  assert.ok(greedy.slice(1).every(({ readyState }) => readyState === WebSocket.OPEN));
});

test('when all connections are in use, the account with most of them gives one', async (t) => {
  const { connect } = await open(t, new Promise(() => {}), { maxSockets: 3 });
  const logIn = async (accountId: number) => {
    const socket = await connect();
    const closed = once(socket, 'close');
    socket.send(`{"type":"hello","jwt":"${accountId}"}`);
    await once(socket, 'message');
    return { socket, closed };
  };
  const greedy = [await logIn(1), await logIn(1), await logIn(1)] as const;
  const [code, reason] = await (await logIn(1)).closed;
  assert.deepEqual([code, String(reason)], [1013, 'All libSQL connections of this cloud are in use']);
  const other = await logIn(2);
  assert.match(String((await greedy[0].closed)[1]), /this account had most of them/);
  for (const { socket } of [greedy[1], greedy[2], other]) assert.equal(socket.readyState, WebSocket.OPEN);
});
