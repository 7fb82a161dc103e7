import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { pino } from 'pino';
import { FakeClock } from '../../platform/clock.ts';
import { eventually } from '../../testing/eventually.ts';
import { type SentContent, sendContent } from '../bodies/send-content.ts';
import { ownResponse } from '../exchange.ts';
import { ConnectionGuard, type GuardDeps } from './connection-guard.ts';

const SLOW_SECONDS = 30;
const PAUSE_SECONDS = 900;
const HEAD = 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n';

interface Fixture {
  readonly clock: FakeClock;
  readonly guard: ConnectionGuard;
  readonly port: number;
  /** Advances the clock by this many seconds, with one check by the guard in each. */
  pass(seconds: number): Promise<void>;
}

/** The guard on `server`, with a controlled clock and timer. */
async function guarded(t: TestContext, server: Server, limits: Partial<GuardDeps> = {}): Promise<Fixture> {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const clock = new FakeClock();
  const none = { maxConnections: 5000, maxPerAddress: 5000, trustedProxies: [] };
  const guard = new ConnectionGuard({
    clock,
    log: pino({ level: 'silent' }),
    ...none,
    slowSeconds: SLOW_SECONDS,
    pauseSeconds: PAUSE_SECONDS,
    maxWaitingBytes: 2 ** 30,
    ...limits,
  });
  guard.watch(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    guard.close();
    server.closeAllConnections();
    server.close();
  });
  const pass = async (seconds: number) => {
    for (let i = 0; i < seconds; i++) {
      clock.advance(1000);
      t.mock.timers.tick(1000);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { clock, guard, port: (server.address() as AddressInfo).port, pass };
}

/** A connection that collects its input; `closed` resolves with it. */
async function dial(
  port: number,
): Promise<{ socket: Socket; seen: { text: string }; closed: Promise<string> }> {
  const socket = connect(port, '127.0.0.1');
  const seen = { text: '' };
  socket.on('error', () => {});
  socket.setEncoding('utf8').on('data', (text: string) => {
    seen.text += text;
  });
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(seen.text)));
  await once(socket, 'connect');
  return { socket, seen, closed };
}

function assertProblem(text: string, status: number, code: string): void {
  assert.match(text, new RegExp(`^HTTP/1.1 ${status} `));
  assert.match(text, /\r\ncontent-type: application\/problem\+json/);
  assert.match(text, /\r\nconnection: close\r\n/);
  const body = text.slice(text.indexOf('\r\n\r\n') + 4);
  assert.equal(Number(/content-length: (\d+)/.exec(text)?.[1]), Buffer.byteLength(body));
  assert.equal(JSON.parse(body).code, code);
}

/** A server that reads bodies and answers `ok`; and its received requests. */
function reading(): { server: Server; requests: IncomingMessage[] } {
  const requests: IncomingMessage[] = [];
  const listener: RequestListener = (request, response) => {
    requests.push(request);
    request.resume().on('end', () => response.end('ok'));
  };
  return { server: createServer(listener), requests };
}

test('a body under 1 KiB/s is cut after the time allowed, with a problem, and not before', async (t) => {
  const { server, requests } = reading();
  const { pass, port } = await guarded(t, server);
  const { socket, seen, closed } = await dial(port);
  socket.write(HEAD);
  await eventually(() => requests.length === 1);
  await pass(1);
  for (let second = 1; second < SLOW_SECONDS; second++) {
    socket.write('x'.repeat(500));
    await pass(1);
  }
  assert.equal(seen.text, '');
  await pass(2);
  assertProblem(await closed, 408, 'request_timeout');
});

test('a body that comes fast enough is not cut, however long it takes', async (t) => {
  const { server, requests } = reading();
  const { pass, port } = await guarded(t, server);
  const { socket, closed } = await dial(port);
  socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 200000\r\n\r\n');
  await eventually(() => requests.length === 1);
  for (let sent = 0; sent < 200_000; sent += 40_000) {
    const seen = requests[0]?.socket.bytesRead ?? 0;
    socket.write('x'.repeat(40_000));
    await eventually(() => (requests[0]?.socket.bytesRead ?? 0) >= seen + 40_000);
    await pass(SLOW_SECONDS - 1);
  }
  assert.match(await closed, /^HTTP\/1.1 200 .*ok$/s);
});

test('the time that we take is not held against the client', async (t) => {
  const held: (() => void)[] = [];
  const server = createServer((request, response) => {
    if (request.url === '/paused') request.on('data', () => {}).pause();
    else request.resume();
    held.push(() => response.end('ok'));
  });
  const { pass, port } = await guarded(t, server);
  const [thinking, paused] = [await dial(port), await dial(port)];
  thinking.socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  paused.socket.write(HEAD.replace('POST /', 'POST /paused'));
  await eventually(() => held.length === 2);
  await pass(SLOW_SECONDS * 4);
  for (const answer of held) answer();
  await eventually(() => [thinking, paused].every(({ seen }) => seen.text.endsWith('ok')));
});

test('headers that do not come in time are answered with a problem', async (t) => {
  const server = createServer({ headersTimeout: 200, connectionsCheckingInterval: 50 }, () => {});
  const { port } = await guarded(t, server);
  const { socket, closed } = await dial(port);
  socket.write('GET / HTTP/1.1\r\nHos');
  assertProblem(await closed, 408, 'request_timeout');
});

test('headers that are too large, and what is no HTTP at all, are answered with a problem', async (t) => {
  const { port } = await guarded(
    t,
    createServer({ maxHeaderSize: 1024 }, () => {}),
  );
  const large = await dial(port);
  large.socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'y'.repeat(2000)}\r\n\r\n`);
  assertProblem(await large.closed, 431, 'headers_too_large');
  const garbage = await dial(port);
  garbage.socket.write('\x16\x03\x01\x02garbage\r\n\r\n');
  assertProblem(await garbage.closed, 400, 'bad_http');
});

test('an idle connection between two requests is kept', async (t) => {
  const { server } = reading();
  const { pass, port, guard } = await guarded(t, server);
  const { socket, seen } = await dial(port);
  for (let request = 1; request <= 3; request++) {
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await eventually(() => seen.text.split('200 OK').length === request + 1);
    await pass(SLOW_SECONDS * 3);
  }
  assert.equal(guard.connections, 1);
  assert.equal(socket.readyState, 'open');
});

test('connections beyond the limit get 503 and are closed, and a free slot is given again', async (t) => {
  const { server } = reading();
  const { port, guard } = await guarded(t, server, { maxConnections: 3 });
  const held = await Promise.all([dial(port), dial(port), dial(port)]);
  await eventually(() => guard.connections === 3);
  await dial(port); // the slot reserved for health checks
  await eventually(() => guard.connections === 4);
  const fifth = await dial(port);
  const refusal = await fifth.closed;
  assertProblem(refusal, 503, 'overloaded');
  assert.match(refusal, /\r\nretry-after: 2\r\n/);
  held[0]?.socket.destroy();
  await eventually(() => guard.connections === 3);
  const next = await dial(port);
  next.socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await eventually(() => next.seen.text.endsWith('ok'));
});

/**
 * Answers each request with far more than the buffers of a connection hold, for the account in the request.
 */
function sending(): { server: Server; served: Socket[] } {
  const served: Socket[] = [];
  const server = createServer((request, response) => {
    ownResponse(response, Number(request.headers['x-account']));
    response.writeHead(200, { 'content-length': String(LARGE_BYTES) });
    response.end(Buffer.alloc(LARGE_BYTES));
  });
  server.on('connection', (socket) => served.push(socket));
  return { server, served };
}

const LARGE_BYTES = 24 * 2 ** 20;

/** A client of this account that sends a request and then does not read. */
async function pausedReader(port: number, account = 0) {
  const reader = await dial(port);
  reader.socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\nX-Account: ${account}\r\n\r\n`);
  await once(reader.socket, 'data');
  reader.socket.pause();
  return reader;
}

test('a reader may pause for a quarter of an hour, and then gets all the rest; not for longer', async (t) => {
  const { server, served } = sending();
  const { pass, port } = await guarded(t, server);
  const [short, long] = [await pausedReader(port), await pausedReader(port)];
  await eventually(() => served.every((socket) => socket.writableLength > 0));
  await pass(PAUSE_SECONDS - 30);
  short.socket.resume();
  await eventually(() => short.seen.text.length > LARGE_BYTES);
  long.socket.resume();
  await pass(1);
  long.socket.pause();
  await eventually(() => long.seen.text.length < LARGE_BYTES);
  await pass(PAUSE_SECONDS + 30);
  await eventually(() => served[1]?.destroyed === true);
});

test('when connections run short, slow readers go first: of whom has most, the longest waiting one', async (t) => {
  const { server, served } = sending();
  const { pass, port, guard } = await guarded(t, server, { maxConnections: 4 });
  const readers = [await pausedReader(port, 7)];
  await pass(1);
  for (let i = 0; i < 3; i++) readers.push(await pausedReader(port, 8));
  await eventually(() => served.length === 4 && served.every((socket) => socket.writableLength > 0));
  await pass(4);
  const next = await pausedReader(port, 9);
  assert.match(next.seen.text, /^HTTP\/1.1 200 /);
  assert.deepEqual(
    served.map(({ destroyed }) => destroyed),
    [false, true, false, false, false],
  );
  assert.equal(guard.connections, 4);
});

test('when an address has its share of connections, one of its slow readers makes room', async (t) => {
  const { server, served } = sending();
  const { pass, port } = await guarded(t, server, { maxPerAddress: 2 });
  for (let i = 0; i < 2; i++) await pausedReader(port, i + 1);
  await eventually(() => served.length === 2 && served.every((socket) => socket.writableLength > 0));
  await pass(8);
  assert.match((await pausedReader(port, 9)).seen.text, /^HTTP\/1.1 200 /);
  assert.deepEqual(
    served.map(({ destroyed }) => destroyed),
    [true, false, false],
  );
});

test('when slow readers hold too much memory, those of the largest account are cut until it fits', async (t) => {
  const { server, served } = sending();
  const { pass, port } = await guarded(t, server, { maxWaitingBytes: 2.5 * LARGE_BYTES });
  await pausedReader(port, 7);
  await eventually(() => (served[0]?.writableLength ?? 0) > 0);
  await pass(2);
  for (let i = 0; i < 3; i++) await pausedReader(port, 8);
  await eventually(() => served.length === 4 && served.every((socket) => socket.writableLength > 0));
  await pass(8);
  await eventually(() => served.filter(({ destroyed }) => destroyed).length === 2);
  await pass(60);
  assert.equal(served[0]?.destroyed, false, 'the one of the other account');
  assert.equal(served.filter(({ destroyed }) => destroyed).length, 2);
});

const chunk = Buffer.alloc(65_536);
/** Content that continues as long as the client reads. */
const endless: SentContent = {
  sizeBytes: 2 ** 40,
  etag: 'e',
  mimeType: 'image/png',
  createdAt: 0,
  inline: null,
  disposition: 'attachment',
  caching: 'no-store',
  async read(_range: unknown, sink: (piece: Uint8Array) => Promise<void>, signal: AbortSignal) {
    for (;;) {
      signal.throwIfAborted();
      await sink(chunk);
    }
  },
  onBegin: () => {},
  onSent: () => {},
};

test('1,000 that stop reading and 1,000 idle ones cost little memory, and only some of the former are cut', async (t) => {
  const app = Fastify({ exposeHeadRoutes: false });
  app.decorateRequest('responseHeaders', null as never);
  app.get('/', async (request: FastifyRequest, reply: FastifyReply) => {
    request.responseHeaders = {};
    await sendContent(request, reply, endless);
    return reply;
  });
  const served: Socket[] = [];
  app.server.on('connection', (socket) => served.push(socket));
  await app.ready();
  const { pass, guard, port } = await guarded(t, app.server);
  const before = process.memoryUsage().rss;
  const clients: Awaited<ReturnType<typeof dial>>[] = [];
  t.after(() => {
    for (const { socket } of clients) socket.destroy();
  });
  // Not all at once: connections that exceed the kernel's queue look connected and never arrive.
  while (clients.length < 2000) {
    clients.push(...(await Promise.all(Array.from({ length: 100 }, () => dial(port)))));
    await eventually(() => guard.connections === clients.length);
  }
  for (const [i, { socket }] of clients.entries()) {
    if (i % 2 === 0) continue;
    socket.pause();
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  }
  const waiting = () => served.reduce((sum, socket) => sum + socket.writableLength, 0);
  const stalled = () => served.filter((socket) => socket.writableLength > 0).length;
  const sent = () => served.reduce((sum, socket) => sum + socket.bytesWritten, 0);
  // A busy host is slow; only a standstill ends the wait.
  for (let last = -1; sent() !== last || stalled() < 1000; ) {
    last = sent();
    await sleep(20);
    await eventually(() => sent() !== last || stalled() === 1000);
  }
  assert.ok(waiting() <= 1000 * 2 * chunk.length, `${waiting()} bytes wait`);
  const grown = process.memoryUsage().rss - before;
  t.diagnostic(`2,000 connections, both ends of them in this process: ${Math.round(grown / 2 ** 20)} MiB`);
  assert.ok(grown < 256 * 2 ** 20, `${grown} bytes more`);
  // When the kernel is short of buffers, bytes move again after the pause, and the time limit starts again.
  await eventually(async () => {
    await pass(1);
    return waiting() <= 48 * 2 ** 20;
  });
  await pass(SLOW_SECONDS * 2);
  assert.ok(guard.connections > 1300, `${guard.connections} left`);
  await eventually(async () => {
    await pass(PAUSE_SECONDS / 3);
    return guard.connections === 1000;
  });
  await pass(SLOW_SECONDS * 2);
  assert.equal(guard.connections, 1000);
  for (const { socket } of clients) socket.destroy();
  await eventually(() => guard.connections === 0);
});

test('where nothing is idle, the account with most requests and WebSockets gives up its newest', async (t) => {
  const own = ({ headers }: IncomingMessage, by: Parameters<typeof ownResponse>[0]) =>
    ownResponse(by, Number(headers['x-account']));
  const server = createServer(own).on('upgrade', own);
  const { guard, pass, port } = await guarded(t, server, { maxConnections: 8 });
  const ask = async (account: number, event: 'request' | 'upgrade' = 'request') => {
    const { socket } = await dial(port);
    const asked = once(server, event);
    const upgrade = event === 'upgrade' ? 'Connection: upgrade\r\nUpgrade: websocket\r\n' : '';
    socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\nX-Account: ${account}\r\n${upgrade}\r\n`);
    await asked;
    return { account, socket };
  };
  const all: Awaited<ReturnType<typeof ask>>[] = [];
  for (const account of [1, 2, 1, 1, 2]) all.push(await ask(account));
  for (const event of ['upgrade', 'request', 'upgrade'] as const) all.push(await ask(1, event));
  await pass(1);
  for (const account of [3, 4, 5, 6]) {
    all.push(await ask(account));
    await pass(1);
  }
  const left = () => all.filter(({ socket }) => !socket.closed).map(({ account }) => account);
  await eventually(() => left().length === 8);
  assert.deepEqual(left(), [1, 2, 1, 2, 3, 4, 5, 6]);
  for (const account of [7, 8]) {
    all.push(await ask(account));
    await pass(1);
  }
  await eventually(() => left().length === 8);
  assert.deepEqual(left(), [1, 2, 3, 4, 5, 6, 7, 8]);
  await ask(9);
  assert.equal(guard.connections, 9, 'all have one, and the reserve is left');
});
