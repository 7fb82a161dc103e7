import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { isAppError } from '../../platform/errors.ts';
import { eventually } from '../../testing/eventually.ts';
import { testClaim } from '../../testing/own-ground.ts';
import { freePort } from '../server-port.ts';
import { PROTOCOLS, type Protocol } from './login-watch.ts';
import { ServerProxy } from './server-proxy.ts';

/** None of the routes that lead past the proxy. */
const HOST = '127.0.0.2';
const LISTENER = 'listener';
const MANY = 50;
/** The maximum of a listener. */
const UNAUTHENTICATED = 256;
let nextPort = 20_000 + (process.pid % 10_000);

interface Fixture {
  readonly proxy: ServerProxy;
  readonly port: number;
  /** Names of listeners at which a client waited. */
  readonly wanted: string[];
  readonly warnings: string[];
  client(): Socket;
}

async function fixture(
  t: TestContext,
  protocol: Protocol = 'postgresql',
  addresses: readonly string[] = [HOST],
): Promise<Fixture> {
  const [wanted, warnings]: [string[], string[]] = [[], []];
  const proxy = new ServerProxy({
    wanted: (listener) => void wanted.push(listener),
    warn: (text) => void warnings.push(text),
    claim: testClaim(),
  });
  const clients: Socket[] = [];
  t.after(async () => {
    for (const client of clients) client.destroy();
    await proxy.close();
  });
  const port = await freePort(nextPort);
  nextPort = port + 1;
  await proxy.open({ name: LISTENER, addresses, port, protocol });
  const client = () => {
    const socket = connect({ port, host: HOST, allowHalfOpen: true });
    clients.push(socket.on('error', () => {}));
    return socket;
  };
  return { proxy, port, wanted, warnings, client };
}

/** A server and its port. */
async function listening(t: TestContext, serve: (socket: Socket) => void, port = 0): Promise<number> {
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket.on('error', () => {}));
    serve(socket);
  });
  t.after(() => stop(server, sockets));
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function stop(server: Server, sockets: readonly Socket[]): void {
  server.close();
  for (const socket of sockets) socket.destroy();
}

const echo = (socket: Socket) => void socket.pipe(socket);

/** Greets, and accepts any answer as a log-in; then it echoes. */
function mysqlLike(socket: Socket): void {
  socket.write(Buffer.of(2, 0, 0, 0, 10, 49));
  socket.once('data', () => {
    socket.write(Buffer.of(3, 0, 0, 2, 0, 0, 0));
    socket.on('data', (bytes) => socket.write(bytes));
  });
}

/** Its other side is gone. */
function closed(client: Socket): Promise<void> {
  client.once('end', () => client.destroy());
  return new Promise((resolve) => client.once('close', () => resolve()));
}

async function answer(client: Socket, words: string): Promise<string> {
  client.write(words);
  return String((await once(client, 'data'))[0]);
}

test('fifty that come at once to a server that sleeps all get in when it is up', async (t) => {
  const { proxy, wanted, client } = await fixture(t);
  const clients = Array.from({ length: MANY }, client);
  const answers = clients.map((each, i) => answer(each, `words ${i}`));
  await eventually(async () => (await proxy.figures(LISTENER)).waiting === MANY);
  assert.equal(wanted[0], LISTENER);
  await proxy.lead(LISTENER, await listening(t, echo));
  assert.deepEqual(
    await Promise.all(answers),
    clients.map((_, i) => `words ${i}`),
  );
  assert.deepEqual(await proxy.figures(LISTENER), { open: MANY, waiting: 0, accepted: MANY });
});

test('who says nothing wakes no server whose protocol lets the client begin', async (t) => {
  const { proxy, wanted, client } = await fixture(t);
  const silent = client();
  await eventually(async () => (await proxy.figures(LISTENER)).accepted === 1);
  assert.deepEqual([wanted, (await proxy.figures(LISTENER)).waiting], [[], 0]);
  silent.write('words');
  await eventually(() => wanted.length > 0);
  const other = await fixture(t, 'mysql');
  other.client();
  await eventually(() => other.wanted.length > 0);
});

test('a server that died and is back elsewhere gets those who came meanwhile', async (t) => {
  const { proxy, wanted, client } = await fixture(t);
  const dead = createServer().listen(0, '127.0.0.1');
  await once(dead, 'listening');
  const { port } = dead.address() as AddressInfo;
  await new Promise((resolve) => dead.close(resolve));
  await proxy.lead(LISTENER, port);
  const answers = Promise.all(Array.from({ length: MANY }, client).map((each) => answer(each, 'words')));
  await eventually(async () => (await proxy.figures(LISTENER)).waiting === MANY && wanted.length > 0);
  // Again while it is not back; then permanently.
  await proxy.lead(LISTENER, port);
  await eventually(async () => (await proxy.figures(LISTENER)).waiting === MANY);
  await proxy.lead(LISTENER, await listening(t, echo));
  assert.deepEqual(new Set(await answers), new Set(['words']));
});

test('those that are through stay when the listener leads nowhere, and newcomers wait', async (t) => {
  const { proxy, client } = await fixture(t);
  await proxy.lead(LISTENER, await listening(t, echo));
  const before = client();
  assert.equal(await answer(before, 'one'), 'one');
  await proxy.lead(LISTENER, null);
  client().write('two');
  await eventually(async () => (await proxy.figures(LISTENER)).waiting === 1);
  assert.equal(await answer(before, 'three'), 'three');
});

test('a listener leads where the last call says, also when that comes before the one before is done', async (t) => {
  const { proxy, wanted, client } = await fixture(t, 'postgresql', ['127.0.0.1', HOST]);
  const port = await listening(t, echo);
  await Promise.all([proxy.lead(LISTENER, port), proxy.lead(LISTENER, null), proxy.lead(LISTENER, port)]);
  assert.equal(await answer(client(), 'straight in'), 'straight in');
  assert.deepEqual(wanted, []);
});

test('one side may end while the other goes on; a reset ends both', async (t) => {
  const { proxy, client } = await fixture(t);
  const served: Socket[] = [];
  const port = await listening(t, (socket) => {
    served.push(socket);
    let text = '';
    socket.on('data', (bytes) => {
      text += bytes;
    });
    socket.on('end', () => socket.end(`${text} and the rest`));
  });
  await proxy.lead(LISTENER, port);
  const half = client();
  let heard = '';
  half.on('data', (bytes) => {
    heard += bytes;
  });
  half.end('words');
  await once(half, 'end');
  assert.equal(heard, 'words and the rest');
  const cut = client();
  cut.write('words');
  await eventually(() => served.length === 2);
  served[1]?.resetAndDestroy();
  const [error] = await once(cut, 'error');
  assert.equal(error.code, 'ECONNRESET');
  await eventually(async () => (await proxy.figures(LISTENER)).open === 0);
});

test('a reader that is slow holds up its server, and nothing in between fills up', async (t) => {
  const piece = Buffer.alloc(65_536, 'x');
  const pieces = 1024;
  const { proxy, client } = await fixture(t);
  let given = 0;
  const port = await listening(t, (socket) => {
    const give = function* () {
      for (; given < pieces; given++) yield piece;
    };
    socket.once('data', () => Readable.from(give()).pipe(socket));
  });
  await proxy.lead(LISTENER, port);
  const reader = client();
  reader.write('words');
  // Until it is paused: it then sends nothing for a while.
  let last = -1;
  await eventually(async () => {
    const before = last;
    last = given;
    await sleep(300);
    return last > 0 && given === last && last === before;
  });
  // Only the buffers of the system for two connections.
  assert.ok(given < pieces / 2, `${given} pieces were taken`);
  let length = 0;
  for await (const bytes of reader) length += bytes.length;
  assert.equal(length, pieces * piece.length);
});

for (const protocol of ['postgresql', 'mysql'] as const)
  test(`${protocol}: unauthenticated connections are evicted, and who has logged in is not`, async (t) => {
    const { proxy, client } = await fixture(t, protocol);
    const ok = Buffer.of('R'.charCodeAt(0), 0, 0, 0, 8, 0, 0, 0, 0);
    const postgresqlLike = (socket: Socket) =>
      void socket.once('data', () => {
        socket.write(ok);
        socket.on('data', (bytes) => socket.write(bytes));
      });
    const serve = { mysql: mysqlLike, postgresql: postgresqlLike }[protocol];
    await proxy.lead(LISTENER, await listening(t, serve));
    const user = client();
    if (PROTOCOLS[protocol].serverBegins) await once(user, 'data');
    await answer(user, 'log-in');
    const unauthenticated = Array.from({ length: 400 }, client);
    let ended = 0;
    for (const each of unauthenticated) each.on('close', () => ended++);
    await eventually(async () => (await proxy.figures(LISTENER)).accepted === 401);
    await eventually(() => ended === 400 - UNAUTHENTICATED);
    const late = client();
    if (PROTOCOLS[protocol].serverBegins) await once(late, 'data');
    await answer(late, 'log-in');
    assert.deepEqual([await answer(user, 'one'), await answer(late, 'two')], ['one', 'two']);
  });

test('who is silent while the server sleeps is evicted for who wakes it', async (t) => {
  const { proxy, client, wanted } = await fixture(t);
  const silent = Array.from({ length: 400 }, client);
  await eventually(async () => (await proxy.figures(LISTENER)).accepted === silent.length);
  const user = client();
  const reply = answer(user, 'words');
  await eventually(() => wanted.length > 0);
  await proxy.lead(LISTENER, await listening(t, echo));
  assert.equal(await reply, 'words');
});

test('who waits is told why it is not let in, also when it asks for encryption first', async (t) => {
  const { proxy, client, wanted } = await fixture(t);
  const plain = client();
  plain.write('start-up');
  const careful = client();
  careful.write(Buffer.of(0, 0, 0, 8, 4, 210, 22, 47));
  await eventually(async () => (await proxy.figures(LISTENER)).waiting === 2 && wanted.length > 0);
  proxy.refuse(LISTENER, Buffer.from('not now'));
  assert.equal(String((await once(plain, 'data'))[0]), 'not now');
  assert.equal(String((await once(careful, 'data'))[0]), 'N');
  assert.equal(await answer(careful, 'start-up'), 'not now');
  assert.equal((await proxy.figures(LISTENER)).waiting, 0);
  const other = await fixture(t, 'mysql');
  const reply = once(other.client(), 'data');
  await eventually(() => other.wanted.length > 0);
  other.proxy.refuse(LISTENER, Buffer.from('not now'));
  assert.equal(String((await reply)[0]), 'not now');
});

test('a listener that is shut ends all its connections, and its port is free', async (t) => {
  const { proxy, port, client } = await fixture(t);
  await proxy.lead(LISTENER, await listening(t, echo));
  const through = client();
  await answer(through, 'words');
  await proxy.lead(LISTENER, null);
  const waiting = client();
  waiting.write('words');
  await eventually(async () => (await proxy.figures(LISTENER)).waiting === 1);
  const over = Promise.all([through, waiting].map(closed));
  await proxy.shut(LISTENER);
  await over;
  await proxy.shut(LISTENER);
  await proxy.open({ name: LISTENER, addresses: [HOST], port, protocol: 'mysql' });
  const again = client();
  await eventually(async () => (await proxy.figures(LISTENER)).waiting === 1);
  proxy.endConnections(LISTENER);
  await closed(again);
});

test('a port that another program has is named with it, and can be opened later', async (t) => {
  const { proxy } = await fixture(t);
  const port = await freePort(nextPort);
  const script = `require('node:net').createServer().listen(${port}, '0.0.0.0', () => console.log('it has it'))`;
  const other = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => other.kill('SIGKILL'));
  await once(other.stdout, 'data');
  const listener = { name: 'other', addresses: [HOST], port, protocol: 'mysql' as const };
  await assert.rejects(proxy.open(listener), (error: unknown) => {
    assert.ok(isAppError(error, 'engine_unavailable'));
    return error.message.includes(`port ${port}`) && error.message.includes(`process ${other.pid}`);
  });
  other.kill('SIGKILL');
  await once(other, 'exit');
  await proxy.open(listener);
});

test('a thread that dies is replaced: the same listeners, leading where they led', async (t) => {
  const threads: Worker[] = [];
  const note = (thread: Worker) => void threads.push(thread);
  process.on('worker', note);
  // Neither a thread nor the wait for the next one keeps a process alive.
  const alive = setInterval(() => {}, 1000);
  t.after(() => {
    process.off('worker', note);
    clearInterval(alive);
  });
  const { proxy, client, warnings } = await fixture(t);
  await proxy.lead(LISTENER, await listening(t, echo));
  const before = client();
  await answer(before, 'words');
  const over = closed(before);
  await threads[0]?.terminate();
  // Requested while there is no thread.
  await Promise.all([proxy.lead(LISTENER, await listening(t, echo)), over]);
  const again = () => {
    const each = client();
    return Promise.race([answer(each, 'words'), closed(each).then(() => null)]).catch(() => null);
  };
  assert.equal(await eventually(again), 'words');
  assert.match(warnings.join('\n'), /the database proxy and its connections ended/);
  assert.equal(threads.length, 2);
});
