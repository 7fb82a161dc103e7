/**
 * Nobody can hold all connections: addresses have shares, idle ones are closed first, and health checks
 * always work.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { parseResponse, readToEnd } from '../harness/raw-http.ts';
import { eventually } from '../harness/waiting.ts';

const few = await CloudProcess.start({ env: { CLOUDLET_MAX_CONNECTIONS: '40' } });
const shares = await CloudProcess.start({
  env: { CLOUDLET_MAX_CONNECTIONS: '400', CLOUDLET_MAX_CONNECTIONS_PER_ADDRESS: '10' },
});
const held: Socket[] = [];
after(async () => {
  for (const socket of held) socket.destroy();
  await few.stop();
  await shares.stop();
});
const client = await CheckedClient.open(shares.api);

/** A connection from an address of this machine's loopback. */
async function dial(base: string, localAddress = '127.0.0.1'): Promise<Socket> {
  const { hostname: host, port } = new URL(base);
  const socket = connect({ host, port: Number(port), localAddress });
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** The response on a new connection; null when it is closed without one. */
async function get(base: string, path: string, localAddress?: string) {
  const socket = await dial(base, localAddress);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  const text = await Promise.race([
    readToEnd(socket),
    once(socket.setEncoding('utf8'), 'data').then(([data]) => String(data)),
  ]);
  socket.destroy();
  return text === '' ? null : parseResponse(text);
}

test('idle connections are closed for new ones, those idle longest first and no more than it takes', async () => {
  for (let i = 0; i < 40; i++) {
    const socket = await dial(few.api);
    socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(socket, 'data');
    held.push(socket);
  }
  // Soon, and not at the end of the first one's keep-alive, 72 s later.
  let isIn = false;
  for (let tries = 0; tries < 80 && !isIn; tries++) {
    await sleep(200);
    isIn = (await get(few.api, '/api/account'))?.status === 401;
  }
  assert.ok(isIn);
  await eventually('the first learns of it', () => held[0]?.closed);
  assert.ok(held.filter(({ closed }) => !closed).length >= 20);
});

test('an address that uses all its connections leaves the others theirs, and is told its health', async () => {
  const head = 'POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
  for (let i = 0; i < 10; i++) {
    const socket = await dial(shares.api);
    socket.write(`${head}Content-Length: 1000\r\n\r\n{`);
    held.push(socket);
  }
  const refused = await eventually('its share is used', async () => {
    const answer = await get(shares.api, '/api/account');
    return answer?.status === 503 ? answer : undefined;
  });
  client.declaration.checkProblem('a connection beyond the share', refused);
  assert.equal(refused.body.code, 'overloaded');
  assert.equal(refused.headers.get('connection'), 'close');
  for (const path of ['/healthz', '/readyz']) {
    const answer = await get(shares.api, path);
    assert.deepEqual([answer?.status, answer?.headers.get('connection')], [200, 'close'], path);
  }
  assert.equal((await get(shares.api, '/api/account', '127.0.0.2'))?.status, 401);
  assert.equal((await get(shares.data, '/cdn/x/y'))?.status, 503, 'one share for both ports');
});

test('a refused connection is closed, also if its client keeps its half open', async () => {
  const { hostname: host, port } = new URL(few.api);
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';
  const requests = [
    `GET /api/updates HTTP/1.1\r\nHost: localhost\r\n${upgrade}Sec-WebSocket-Key: x\r\n\r\nmore`,
    'no HTTP\r\n\r\nmore',
  ];
  for (const request of requests) {
    const socket = connect({ host, port: Number(port), allowHalfOpen: true });
    held.push(socket);
    const closed = once(socket, 'error'); // data sent to a closed connection is answered with a reset
    socket.write(request);
    assert.match(String(await once(socket, 'data')), /^HTTP\/1.1 4\d\d /);
    const timer = setInterval(() => socket.write('x'), 100);
    assert.match(String((await closed)[0]), /ECONNRESET|EPIPE/);
    clearInterval(timer);
  }
});

test('more connections than the process may open files neither end it nor keep others out', async (t) => {
  const cloud = await CloudProcess.start({ wrapper: ['sh', '-c', 'ulimit -n 400 && exec "$0" "$@"'] });
  t.after(() => cloud.stop());
  const dialled: Socket[] = [];
  t.after(() => dialled.forEach((socket) => void socket.destroy()));
  const { hostname: host, port } = new URL(cloud.api);
  for (let i = 0; i < 600; i++) {
    const socket = connect({ host, port: Number(port), localAddress: `127.0.2.${1 + (i % 20)}` });
    socket.on('error', () => {});
    dialled.push(socket);
  }
  await eventually('all were taken or refused', () => dialled.every(({ connecting }) => !connecting));
  // A connection without a free slot may be cut before it has read the reason.
  const askStatus = () => get(cloud.api, '/api/system/status', '127.0.3.1').catch(() => null);
  // The processor usage is read once a second, by opening a file.
  for (let i = 0; i < 15; i++) {
    await sleep(200);
    await askStatus();
  }
  for (const socket of dialled) socket.destroy();
  const status = await eventually('the status', async () => {
    const answer = await askStatus();
    return answer?.status === 200 ? answer : undefined;
  });
  assert.equal(status.body.components.metadata.status, 'ok');
});
