import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { after, afterEach, beforeEach, test } from 'node:test';
import { systemClock } from '../../clock.ts';
import type { FrontPort } from '../../compute/front.ts';
import { eventually } from '../../testing/eventually.ts';
import { LoopbackFront } from './loopback-front.ts';

/** Far from what Cloudlet gives to machines. */
const ADDRESS = '127.77.13.9';
const VM = 'vm-test';
const timings = { retryMs: 10, waitMs: 400, holdMs: 30, atOnceMs: 50, lingerMs: 500 };

let front: LoopbackFront;
let signs: number;
const guests = new Map<number, Server>();
const guestSockets = new Set<Socket>();
/** Where each guest port is; kept when the guest goes, as an engine's forwarder keeps its port. */
const endpoints = new Map<number, number>();

beforeEach(() => {
  front = new LoopbackFront({ clock: systemClock, timings });
  signs = 0;
});
afterEach(async () => {
  await front.closeAll();
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

/** The same numbers outside as inside would need privileges: outside they are what `outside` says. */
const outside = (guestPort: number) => (guestPort === 8080 ? 8080 : 20_000 + guestPort);

async function open(guestPorts: number[], extra: FrontPort[] = []): Promise<void> {
  const refused = await front.open({
    vmId: VM,
    address: ADDRESS,
    ports: [...guestPorts.map((port) => ({ port: outside(port), guestPort: port })), ...extra],
    endpointOf: (guestPort) => {
      const port = endpoints.get(guestPort);
      return port === undefined ? null : { host: '127.0.0.1', port };
    },
    onSignOfLife: () => {
      signs++;
    },
  });
  assert.deepEqual(refused, []);
}

function client(guestPort: number): Socket {
  const socket = connect({ host: ADDRESS, port: outside(guestPort), allowHalfOpen: true });
  return socket.on('error', () => undefined);
}

/** All that comes until the other side ends or the connection is cut. */
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

test('a machine that is not running: 503 on an HTTP port, elsewhere an end at once', async () => {
  await guest(8080, echo);
  await guest(22, banner);
  await open([22, 8080]);
  const http = client(8080);
  http.write('GET / HTTP/1.1\r\n\r\n');
  const answer = await readAll(http);
  assert.match(answer, /^HTTP\/1\.1 503 .*\r\n\r\nThis virtual machine is not running\.\n$/s);
  http.end();
  const head = client(8080);
  head.write('HEAD / HTTP/1.1\r\n\r\n');
  assert.match(await readAll(head), /^HTTP\/1\.1 503 .*\r\n\r\n$/s);
  head.end();
  assert.equal(await readAll(client(22)), '');
  assert.equal(guestSockets.size, 0);
  assert.equal(signs, 0);
});

test('bytes pass both ways, ends pass as ends, and both directions are counted', async () => {
  await guest(8080, echo);
  await open([8080]);
  front.setRunning(VM, true);
  const bytes = Buffer.alloc(1_000_000, 'abc');
  const socket = client(8080);
  socket.end(bytes);
  assert.equal(await readAll(socket), bytes.toString());
  await eventually(() => front.traffic(VM)?.connections === 0);
  assert.deepEqual(front.traffic(VM), { inBytes: 1_000_000, outBytes: 1_000_000, connections: 0 });
  assert.equal(signs, 1);
});

test('a guest that is asked for its banner is asked until it speaks, then never again', async () => {
  let dials = 0;
  const count = (socket: Socket) => {
    dials++;
    if (dials < 4) socket.destroy();
    else if (dials > 4) banner(socket);
    // The fourth is taken and never answered, as by a guest without a network.
  };
  await guest(22, count);
  await open([22]);
  front.setRunning(VM, true);
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
  front.setRunning(VM, true);
  const socket = client(22);
  socket.write('SSH-2.0-client\r\n');
  const answer = readAll(socket);
  await new Promise((resolve) => setTimeout(resolve, 50));
  let dials = 0;
  await guest(22, (guestSide) => {
    dials++;
    guestSide.write('SSH-2.0-guest\r\n');
    guestSide.once('data', (bytes) => guestSide.end(`heard ${bytes}`));
  });
  assert.equal(await answer, 'SSH-2.0-guest\r\nheard SSH-2.0-client\r\n');
  socket.end();
  assert.equal(dials, 1);
  assert.equal(signs, 1);
  assert.equal(front.traffic(VM)?.inBytes, 16);
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
  front.setRunning(VM, true);
  const socket = client(8080);
  socket.write('request');
  assert.equal(await readAll(socket), 'answer');
  socket.end();
  assert.deepEqual(requests, ['request']);
  assert.equal(front.traffic(VM)?.inBytes, 7);
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
  front.setRunning(VM, true);
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
  front.setRunning(VM, true);
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
  front.setRunning(VM, true);
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
  front.setRunning(VM, true);
  const socket = client(8080);
  socket.end(Buffer.alloc(3_000_000));
  assert.equal(await readAll(socket), '3000000');
  assert.equal(front.traffic(VM)?.inBytes, 3_000_000);
});

test('the end of a run cuts its connections; the next run has its own sign of life', async () => {
  await guest(8080, echo);
  await open([8080]);
  for (const run of [1, 2]) {
    front.setRunning(VM, true);
    const socket = client(8080);
    socket.write('x');
    await once(socket, 'data');
    assert.equal(signs, run);
    const closed = gone(socket);
    front.setRunning(VM, false);
    await closed;
  }
  await eventually(() => guestSockets.size === 0);
  assert.equal(front.traffic(VM)?.connections, 0);
});

test('a reset passes as a reset, from either side', async () => {
  const guestSides: Socket[] = [];
  await guest(8080, (socket) => void guestSides.push(socket.on('data', () => void socket.write('y'))));
  await open([8080]);
  front.setRunning(VM, true);
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
  front.setRunning(VM, true);
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
  front.setRunning(VM, true);
  const sockets = Array.from({ length: 256 }, () => client(8080));
  await Promise.all(sockets.map((socket) => socket.write('x') && once(socket, 'data')));
  assert.equal(await readAll(client(8080)), '');
  assert.equal(front.traffic(VM)?.connections, 256);
  for (const socket of sockets) socket.destroy();
  await eventually(() => front.traffic(VM)?.connections === 0);
});

test('a port that another program has is refused with the reason; ssh moves to 2222', async () => {
  const other = createServer().listen(20_022, ADDRESS);
  await once(other, 'listening');
  await guest(22, (socket) => void socket.write('SSH-2.0-guest\r\n'));
  const refused = await front.open({
    vmId: VM,
    address: ADDRESS,
    ports: [{ port: 20_022, guestPort: 22 }],
    endpointOf: () => ({ host: '127.0.0.1', port: endpoints.get(22) ?? 0 }),
    onSignOfLife: () => undefined,
  });
  assert.deepEqual(
    refused.map(({ port }) => port),
    [20_022],
  );
  assert.match(refused[0]?.reason ?? '', /another program/);
  front.setRunning(VM, true);
  const socket = connect({ host: ADDRESS, port: 2222 });
  assert.equal(String((await once(socket, 'data'))[0]), 'SSH-2.0-guest\r\n');
  socket.destroy();
  await new Promise((resolve) => other.close(resolve));
});

test('a closed address answers no more; closing again, or what never was, is no error', async () => {
  await guest(8080, echo);
  await open([8080]);
  front.setRunning(VM, true);
  const socket = client(8080);
  socket.write('x');
  await once(socket, 'data');
  const closed = gone(socket);
  await front.close(VM);
  await closed;
  const late = client(8080);
  const refusal = new Promise<NodeJS.ErrnoException>((resolve) => late.on('error', resolve));
  assert.equal((await refusal).code, 'ECONNREFUSED');
  await front.close(VM);
  assert.equal(front.traffic(VM), null);
  front.setRunning(VM, true);
});

test('a server that spoke before and takes its time is asked once for each client', async () => {
  let dials = 0;
  let delayMs = 0;
  await guest(22, (socket) => {
    dials++;
    setTimeout(() => banner(socket), delayMs);
  });
  await open([22]);
  front.setRunning(VM, true);
  await eventually(() => signs === 1);
  dials = 0;
  delayMs = 20 * timings.retryMs;
  assert.equal(await readAll(client(22)), 'SSH-2.0-guest\r\n');
  assert.equal(dials, 1);
});
