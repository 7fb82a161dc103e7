import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { pino } from 'pino';
import { FakeClock } from '../platform/clock.ts';
import { eventually } from '../testing/eventually.ts';
import { ConnectionGuard } from './connection-guard.ts';
import type { SlotDeps } from './connection-slots.ts';
import { sendContent } from './send-content.ts';

const SLOW_SECONDS = 30;
const HEAD = 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n';

interface Fixture {
  readonly clock: FakeClock;
  readonly guard: ConnectionGuard;
  readonly port: number;
  /** So many seconds go by, and the guard looks once each. */
  pass(seconds: number): Promise<void>;
}

/** The guard on `server`, with a clock and a timer that obey. */
async function guarded(t: TestContext, server: Server, limits: Partial<SlotDeps> = {}): Promise<Fixture> {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const clock = new FakeClock();
  const none = { maxConnections: 5000, maxPerAddress: 5000, trustedProxies: [] };
  const guard = new ConnectionGuard({
    clock,
    log: pino({ level: 'silent' }),
    ...none,
    ...limits,
    slowSeconds: SLOW_SECONDS,
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

/** A connection that collects what comes; `closed` resolves with it. */
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

/** A server that reads bodies and answers `ok`; and the requests it got. */
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
  await dial(port); // the slot that is kept for questions about health
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

test('1,000 that stop reading and 1,000 idle ones cost little memory, and only the former are cut', async (t) => {
  const app = Fastify({ exposeHeadRoutes: false });
  app.decorateRequest('responseHeaders', null as never);
  const chunk = Buffer.alloc(65_536);
  const content = {
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
  app.get('/', async (request: FastifyRequest, reply: FastifyReply) => {
    request.responseHeaders = {};
    await sendContent(request, reply, content);
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
  // Not all at once: what the kernel's queue does not hold looks connected and never arrives.
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
  let last = -1;
  await eventually(() => {
    const sent = served.reduce((sum, socket) => sum + socket.bytesWritten, 0);
    const isQuiet = sent === last;
    last = sent;
    return isQuiet && stalled() === 1000;
  });
  assert.ok(waiting() <= 1000 * 2 * chunk.length, `${waiting()} bytes wait`);
  const grown = process.memoryUsage().rss - before;
  t.diagnostic(`2,000 connections, both ends of them in this process: ${Math.round(grown / 2 ** 20)} MiB`);
  assert.ok(grown < 256 * 2 ** 20, `${grown} bytes more`);
  await pass(SLOW_SECONDS + 2);
  // When the kernel is short of buffers, bytes move again after the quiet, and the time allowed begins anew.
  await eventually(async () => {
    await pass(1);
    return guard.connections === 1000;
  });
  await pass(SLOW_SECONDS * 2);
  assert.equal(guard.connections, 1000);
  for (const { socket } of clients) socket.destroy();
  await eventually(() => guard.connections === 0);
});
