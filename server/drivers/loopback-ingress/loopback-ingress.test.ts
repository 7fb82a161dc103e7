import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { after, afterEach, beforeEach, test } from 'node:test';
import { NOT_RUNNING } from '../../compute/ingress.ts';
import { systemClock } from '../../platform/clock.ts';
import { eventually } from '../../testing/eventually.ts';
import { LoopbackIngress } from './loopback-ingress.ts';

/** Used by this process only. */
const ADDRESS = `127.77.${process.pid % 256}.9`;
const VM = 'vm-test';
const timings = { retryMs: 10, waitMs: 400, holdMs: 30, atOnceMs: 50, lingerMs: 500 };

const UNLIMITED = { take: () => true };
let ingress: LoopbackIngress;
let signs: number;
const guests = new Map<number, Server>();
const guestSockets = new Set<Socket>();
/** The address of each guest port; kept when the guest stops, as an engine's forwarder keeps its port. */
const endpoints = new Map<number, number>();

beforeEach(() => {
  ingress = new LoopbackIngress({ clock: systemClock, timings, descriptors: UNLIMITED, guard: null });
  signs = 0;
});
afterEach(async () => {
  await ingress.closeAll();
  for (const port of [...guests.keys()]) await silence(port);
  endpoints.clear();
});
after(() => eventually(() => guestSockets.size === 0));

async function guest(guestPort: number, serve: (socket: Socket) => void): Promise<void> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    guestSockets.add(socket);
    socket.on('error', () => undefined).on('close', () => guestSockets.delete(socket));
    serve(socket);
  });
  server.listen(endpoints.get(guestPort) ?? 0, '127.0.0.1');
  await once(server, 'listening');
  endpoints.set(guestPort, (server.address() as AddressInfo).port);
  guests.set(guestPort, server);
}

async function silence(guestPort: number): Promise<void> {
  const server = guests.get(guestPort);
  guests.delete(guestPort);
  for (const socket of guestSockets) socket.destroy();
  if (server !== undefined) await new Promise((resolve) => server.close(resolve));
}

/** The outside port of the guest's port: 22 needs a privilege on the host. */
const outside = (guestPort: number) => (guestPort === 22 ? 2222 : guestPort);

function exposure(guestPorts: readonly number[]) {
  return {
    vmId: VM,
    address: ADDRESS,
    guestPorts,
    endpointOf: (guestPort: number) => {
      const port = endpoints.get(guestPort);
      return port === undefined ? null : { host: '127.0.0.1', port };
    },
    onSignOfLife: () => void signs++,
  };
}

async function open(guestPorts: readonly number[]): Promise<void> {
  const closed = await ingress.open(exposure(guestPorts));
  assert.deepEqual(
    closed.filter(({ port }) => port !== 22),
    [],
  );
}

/** The reason why each port is closed, or null. */
function states(guestPorts: readonly number[] = []): Record<number, string | null> {
  return Object.fromEntries(ingress.ports(VM, guestPorts).map(({ port, reason }) => [port, reason]));
}

function client(guestPort: number): Socket {
  const socket = connect({ host: ADDRESS, port: outside(guestPort), allowHalfOpen: true });
  return socket.on('error', () => undefined);
}

/** All data until the other side ends or the connection is cut. */
async function readAll(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1');
  });
  await Promise.race([once(socket, 'end'), once(socket, 'close')]);
  return text;
}

function gone(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.once('close', resolve));
}

const echo = (socket: Socket) => void socket.pipe(socket);
const banner = (socket: Socket) => void socket.end('SSH-2.0-guest\r\n');

function refusal(socket: Socket): Promise<string | undefined> {
  return new Promise((resolve) => socket.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code)));
}

test('a machine that does not run costs no listener: connections are refused, and each port says why', async () => {
  await guest(8080, echo);
  assert.deepEqual(states([80, 8080]), { 80: NOT_RUNNING, 8080: NOT_RUNNING, 2222: NOT_RUNNING });
  assert.equal(await refusal(client(8080)), 'ECONNREFUSED');
  assert.equal(ingress.traffic(VM), null);
});

test('bytes pass both ways, ends pass as ends, and both directions are counted', async () => {
  await guest(8080, echo);
  await open([8080]);
  ingress.begin(VM);
  const bytes = Buffer.alloc(1_000_000, 'abc');
  const socket = client(8080);
  socket.end(bytes);
  assert.equal(await readAll(socket), bytes.toString());
  await eventually(() => ingress.traffic(VM)?.connections === 0);
  assert.deepEqual(ingress.traffic(VM), { inBytes: 1_000_000, outBytes: 1_000_000, connections: 0 });
  assert.equal(signs, 1);
});

test('a guest that is asked for its banner is asked until it speaks, then never again', async () => {
  let dials = 0;
  const count = (socket: Socket) => {
    dials++;
    if (dials < 4) socket.destroy();
    else if (dials > 4) banner(socket);
    // The fourth is accepted and never answered, as by a guest without a network.
  };
  await guest(22, count);
  await open([22]);
  ingress.begin(VM);
  await eventually(() => signs === 1);
  const after = dials;
  await new Promise((resolve) => setTimeout(resolve, timings.retryMs * 5));
  assert.equal(dials, after);
  assert.equal(signs, 1);
  await eventually(() => guestSockets.size === 0);
});

test('ssh right after the start waits, and is given the connection on which the guest spoke', async () => {
  await guest(22, () => undefined);
  await silence(22);
  await open([22]);
  ingress.begin(VM);
  const socket = client(22);
  socket.write('SSH-2.0-client\r\n');
  const answer = readAll(socket);
  await new Promise((resolve) => setTimeout(resolve, 50));
  let heard = 0;
  await guest(22, (guestSide) => {
    guestSide.write('SSH-2.0-guest\r\n');
    guestSide.once('data', (bytes) => guestSide.end(`heard ${++heard}: ${bytes}`));
  });
  assert.equal(await answer, 'SSH-2.0-guest\r\nheard 1: SSH-2.0-client\r\n');
  socket.end();
  assert.equal(heard, 1);
  assert.equal(signs, 1);
  assert.equal(ingress.traffic(VM)?.inBytes, 16);
});

test('a request to a guest that does not listen yet is sent again, once it does', async () => {
  const requests: string[] = [];
  let refusals = 3;
  await guest(8080, (socket) => {
    if (refusals-- > 0) return void socket.resetAndDestroy();
    socket.once('data', (bytes) => {
      requests.push(bytes.toString());
      socket.end('answer');
    });
  });
  await open([8080]);
  ingress.begin(VM);
  const socket = client(8080);
  socket.write('request');
  assert.equal(await readAll(socket), 'answer');
  socket.end();
  assert.deepEqual(requests, ['request']);
  assert.equal(ingress.traffic(VM)?.inBytes, 7);
});

test('once a port has answered, a request that a guest dropped is never sent twice', async () => {
  let requests = 0;
  await guest(8080, (socket) => {
    socket.once('data', () => {
      requests++;
      if (requests === 1) socket.end('answer');
      else socket.destroy();
    });
  });
  await open([8080]);
  ingress.begin(VM);
  for (const expected of ['answer', '']) {
    const socket = client(8080);
    socket.write('request');
    assert.equal(await readAll(socket), expected);
    socket.end();
  }
  await new Promise((resolve) => setTimeout(resolve, timings.retryMs * 5));
  assert.equal(requests, 2);
});

test('nothing ever answers: the client is told after a while', async () => {
  await guest(8080, (socket) => void socket.destroy());
  await guest(22, (socket) => void socket.destroy());
  await open([22, 8080]);
  ingress.begin(VM);
  const http = client(8080);
  http.write('GET / HTTP/1.1\r\n\r\n');
  assert.match(await readAll(http), /503 .*nothing answers on this port/s);
  http.end();
  assert.equal(await readAll(client(22)), '');
  assert.equal(signs, 0);
});

test('a guest that thinks for longer than a client may wait for a guest is not cut', async () => {
  await guest(8080, (socket) => {
    socket.once('data', () => setTimeout(() => socket.end('late'), timings.waitMs * 1.5));
  });
  await open([8080]);
  ingress.begin(VM);
  const socket = client(8080);
  socket.write('x');
  assert.equal(await readAll(socket), 'late');
  socket.end();
});

test('an upload that is longer than what is held passes to a guest that answers at its end', async () => {
  await guest(8080, (socket) => {
    let bytes = 0;
    socket.on('data', (chunk) => {
      bytes += chunk.length;
    });
    socket.on('end', () => socket.end(String(bytes)));
  });
  await open([8080]);
  ingress.begin(VM);
  const socket = client(8080);
  socket.end(Buffer.alloc(3_000_000));
  assert.equal(await readAll(socket), '3000000');
  assert.equal(ingress.traffic(VM)?.inBytes, 3_000_000);
});

test('the end of a run cuts its connections; the next run has its own sign of life', async () => {
  await guest(8080, echo);
  for (const run of [1, 2]) {
    await open([8080]);
    ingress.begin(VM);
    const socket = client(8080);
    socket.write('x');
    await once(socket, 'data');
    assert.equal(signs, run);
    assert.deepEqual(ingress.traffic(VM), { inBytes: 1, outBytes: 1, connections: 1 });
    const closed = gone(socket);
    await ingress.close(VM);
    await closed;
  }
  await eventually(() => guestSockets.size === 0);
});

test('a reset passes as a reset, from either side', async () => {
  const guestSides: Socket[] = [];
  await guest(8080, (socket) => void guestSides.push(socket.on('data', () => void socket.write('y'))));
  await open([8080]);
  ingress.begin(VM);
  const talk = async () => {
    const socket = client(8080);
    socket.write('x');
    await once(socket, 'data');
    return { socket, guestSide: guestSides.at(-1) ?? assert.fail() };
  };
  const one = await talk();
  const resetError = new Promise<NodeJS.ErrnoException>((resolve) => one.socket.on('error', resolve));
  one.guestSide.resetAndDestroy();
  assert.equal((await resetError).code, 'ECONNRESET');
  const two = await talk();
  const guestError = new Promise<NodeJS.ErrnoException>((resolve) => two.guestSide.on('error', resolve));
  two.socket.resetAndDestroy();
  assert.equal((await guestError).code, 'ECONNRESET');
});

test('a client that does not read holds back the guest', async () => {
  let sent = 0;
  const piece = Buffer.alloc(65_536);
  await guest(8080, (socket) => {
    const more = () => {
      while (sent < 256 * 2 ** 20) {
        sent += piece.length;
        if (!socket.write(piece)) return void socket.once('drain', more);
      }
    };
    socket.once('data', more);
  });
  await open([8080]);
  ingress.begin(VM);
  const socket = client(8080);
  socket.write('x');
  await once(socket, 'data');
  socket.pause();
  let before = -1;
  while (before !== sent) {
    before = sent;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.ok(sent < 64 * 2 ** 20, `${sent}`);
  socket.destroy();
});

test('at most 256 connections of a machine are open at a time', async () => {
  await guest(8080, echo);
  await open([8080]);
  ingress.begin(VM);
  const sockets = Array.from({ length: 256 }, () => client(8080));
  await Promise.all(sockets.map((socket) => socket.write('x') && once(socket, 'data')));
  assert.equal(await readAll(client(8080)), '');
  assert.equal(ingress.traffic(VM)?.connections, 256);
  for (const socket of sockets) socket.destroy();
  await eventually(() => ingress.traffic(VM)?.connections === 0);
});

test('a port that another program has stays closed with the reason, and is opened when that one has ended', async () => {
  const other = createServer().listen(8080, ADDRESS);
  await once(other, 'listening');
  await guest(8080, echo);
  const closed = await ingress.open(exposure([8080]));
  assert.deepEqual(
    closed.map(({ port }) => port),
    [8080],
  );
  ingress.begin(VM);
  assert.match(states()[8080] ?? '', /another program/);
  assert.equal(states()[2222], null);
  // A repeated message is not reported.
  assert.deepEqual(await ingress.open(exposure([8080])), []);
  await new Promise((resolve) => other.close(resolve));
  await open([8080]);
  assert.equal(states()[8080], null);
  const socket = client(8080);
  socket.write('x');
  assert.equal(String((await once(socket, 'data'))[0]), 'x');
  socket.destroy();
});

test('when no more files may be opened ports stay closed, and clients are cut', async () => {
  let free = 1;
  const descriptors = { take: (more: number) => free >= more };
  ingress = new LoopbackIngress({ clock: systemClock, timings, descriptors, guard: null });
  await guest(8080, echo);
  await open([8080]);
  ingress.begin(VM);
  assert.equal(await readAll(client(8080)), '');
  assert.equal(guestSockets.size, 0);
  await ingress.close(VM);
  free = 0;
  const closed = await ingress.open(exposure([8080]));
  assert.deepEqual(closed.map(({ port }) => port).sort(), [2222, 8080]);
  assert.match(closed[0]?.reason ?? '', /too many open files/);
  free = 2;
  await open([8080]);
  assert.deepEqual(states(), { 8080: null, 2222: null });
});

test('a closed address answers no more; closing again, or what never was, is no error', async () => {
  await guest(8080, echo);
  await open([8080]);
  ingress.begin(VM);
  const socket = client(8080);
  socket.write('x');
  await once(socket, 'data');
  const closed = gone(socket);
  await ingress.close(VM);
  await closed;
  assert.equal(await refusal(client(8080)), 'ECONNREFUSED');
  await ingress.close(VM);
  assert.equal(ingress.traffic(VM), null);
  ingress.begin(VM);
});

test('a server that spoke before and takes its time is asked once for each client', async () => {
  let dials = 0;
  let delayMs = 0;
  await guest(22, (socket) => {
    dials++;
    setTimeout(() => banner(socket), delayMs);
  });
  await open([22]);
  ingress.begin(VM);
  await eventually(() => signs === 1);
  dials = 0;
  delayMs = 20 * timings.retryMs;
  assert.equal(await readAll(client(22)), 'SSH-2.0-guest\r\n');
  assert.equal(dials, 1);
});
