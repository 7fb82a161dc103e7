/** The doors of database servers, with plain servers behind them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAppError } from '../../platform/errors.ts';
import { eventually } from '../../testing/eventually.ts';
import { freePort } from '../server-port.ts';
import { directRules } from './direct-ways.ts';
import { LoginWatch } from './login-watch.ts';
import { type Door, ServerProxy } from './server-proxy.ts';

const MIB = 2 ** 20;
let nextPort = 11_000 + (process.pid % 4000);

async function given(t: { after(work: () => Promise<void>): void }, protocol: Door['protocol'] = 'mysql') {
  const wanted: string[] = [];
  const table = `cloudlet_proxy_test_${process.pid}`;
  const proxy = new ServerProxy({ wanted: (door) => wanted.push(door), warn: () => {}, table });
  const servers: Server[] = [];
  t.after(async () => {
    await proxy.close();
    for (const server of servers) server.close();
  });
  const port = await freePort(nextPort);
  nextPort = port + 1;
  const door: Door = { name: 'one', addresses: ['127.0.0.1'], port, protocol };
  await proxy.open(door);
  /** Listens somewhere. */
  const serve = async (onConnection: (socket: Socket) => void) => {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {});
      onConnection(socket);
    });
    servers.push(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return { server, port: (server.address() as { port: number }).port };
  };
  const open = () => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => {});
    return socket;
  };
  return { proxy, door, wanted, serve, open };
}

const echo = (socket: Socket) => void socket.pipe(socket);

/** What comes back of a word. */
async function said(socket: Socket, word: string): Promise<string> {
  socket.write(word);
  const [bytes] = await once(socket, 'data');
  return String(bytes);
}

test('connections to a server that sleeps wait, wake it, and all are served', async (t) => {
  const { proxy, wanted, serve, open } = await given(t);
  const sockets = Array.from({ length: 50 }, open);
  const answers = sockets.map((socket, at) => said(socket, `word ${at}`));
  await eventually(() => wanted.length > 0);
  await eventually(async () => (await proxy.figures('one')).waiting === 50);
  const { port } = await serve(echo);
  await proxy.lead('one', port);
  assert.deepEqual(
    await Promise.all(answers),
    sockets.map((_, at) => `word ${at}`),
  );
  for (const socket of sockets) socket.destroy();
  await eventually(async () => (await proxy.figures('one')).open === 0);
});

test('who is asleep again has newcomers wait, and those that are through stay', async (t) => {
  const { proxy, serve, open } = await given(t);
  const { port } = await serve(echo);
  await proxy.lead('one', port);
  const first = open();
  assert.equal(await said(first, 'a'), 'a');
  await proxy.lead('one', null);
  assert.equal(await said(first, 'b'), 'b');
  const second = open();
  const answer = said(second, 'c');
  await eventually(async () => (await proxy.figures('one')).waiting === 1);
  await proxy.lead('one', port);
  assert.equal(await answer, 'c');
  for (const socket of [first, second]) socket.destroy();
});

test('a server that is not there any more is asked for, and comes at another port', async (t) => {
  const { proxy, wanted, serve, open } = await given(t);
  const { server, port } = await serve(echo);
  server.close();
  await once(server, 'close');
  await proxy.lead('one', port);
  // Not past the proxy, where a rule may lead them: that would be refused.
  await proxy.lead('one', null);
  const socket = open();
  const answer = said(socket, 'x');
  await eventually(() => wanted.length > 0);
  const next = await serve(echo);
  await proxy.lead('one', next.port);
  assert.equal(await answer, 'x');
  socket.destroy();
});

test('the end of one side is told to the other, whose last words arrive; a slow reader holds up its server', async (t) => {
  const { proxy, serve, open } = await given(t);
  let sent = 0;
  const { port } = await serve(async (socket) => {
    const [words] = await once(socket, 'data');
    assert.equal(String(words), 'all');
    await once(socket, 'end');
    const piece = Buffer.alloc(MIB);
    for (; sent < 64; sent++) if (!socket.write(piece)) await once(socket, 'drain');
    socket.end();
  });
  // By the proxy, wherever we run.
  const socket = open();
  socket.end('all');
  await eventually(async () => (await proxy.figures('one')).waiting === 1);
  await proxy.lead('one', port);
  await once(socket, 'readable');
  await sleep(300);
  assert.ok(sent < 32, `${sent} MiB went ahead of their reader`);
  assert.equal((await buffer(socket)).length, 64 * MIB);
});

test('strangers who are silent make room for who comes', async (t) => {
  const { proxy, serve, open } = await given(t, 'postgresql');
  const silent = Array.from({ length: 400 }, open);
  await eventually(async () => (await proxy.figures('one')).accepted === 400);
  assert.ok((await proxy.figures('one')).waiting <= 256);
  const { port } = await serve(echo);
  const user = open();
  const answer = said(user, 'x');
  await eventually(async () => (await proxy.figures('one')).accepted === 401);
  await proxy.lead('one', port);
  assert.equal(await answer, 'x');
  for (const socket of [user, ...silent]) socket.destroy();
});

test('who cannot be let in is told why', async (t) => {
  const { proxy, wanted, open } = await given(t, 'postgresql');
  const socket = open();
  socket.write('start-up');
  await eventually(() => wanted.length > 0);
  proxy.refuse('one', Buffer.from('not now'));
  assert.equal(String(await buffer(socket)), 'not now');
});

test('a port that another program has is named with it', async (t) => {
  const { proxy, door } = await given(t);
  await assert.rejects(proxy.open({ ...door, name: 'two' }), (error) => {
    assert.match(String(error), new RegExp(`port ${door.port} of databases is taken by`));
    return isAppError(error, 'engine_unavailable');
  });
  await proxy.open(door);
});

test('that a user is in is seen in what the server says', () => {
  const message = (type: string, body: Buffer) => {
    const head = Buffer.alloc(5);
    head.write(type);
    head.writeInt32BE(body.length + 4, 1);
    return Buffer.concat([head, body]);
  };
  const [asked, ok] = [Buffer.alloc(8), Buffer.alloc(4)];
  asked.writeInt32BE(10);
  const watch = new LoginWatch('postgresql');
  assert.equal(watch.sees(Buffer.from('N')), false);
  assert.equal(watch.sees(message('R', asked)), false);
  const last = message('R', ok);
  assert.equal(watch.sees(last.subarray(0, 4)), false);
  assert.equal(watch.sees(last.subarray(4)), true);
  const hidden = new LoginWatch('postgresql');
  assert.equal(hidden.sees(Buffer.from('S')), false);
  assert.equal(hidden.sees(last), false);

  const packet = (at: number, ...body: number[]) => Buffer.from([body.length, 0, 0, at, ...body]);
  const mysql = new LoginWatch('mysql');
  assert.equal(mysql.sees(packet(0, 0x0a, 0)), false);
  assert.equal(mysql.sees(packet(2, 0xfe, 1)), false);
  assert.equal(mysql.sees(packet(4, 0x00, 0, 0)), true);
});

test('rules lead new connections past the proxy, so many a second, and nobody else to the servers', () => {
  assert.equal(directRules('x', new Map()), 'table ip x\ndelete table ip x\n');
  const rules = directRules('x', new Map([[5000, 6000]]));
  assert.match(
    rules,
    /daddr 127\.0\.0\.1 tcp dport 5000 limit rate \d+\/second .* dnat to 127\.0\.0\.1:6000/,
  );
  assert.match(rules, /tcp dport \{ 6000 \} .* ct status & dnat == 0 ip saddr != 127\.94\.0\.1 reject/);
});
