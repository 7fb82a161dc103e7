import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as requestOf,
  type Server,
} from 'node:http';
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server as TcpServer,
} from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket, WebSocketServer } from 'ws';
import { testDoor } from '../testing/test-door.ts';
import { serveUpgrades } from './connections/upgrades.ts';
import { TrustedProxies } from './exchange.ts';
import { NamedMachines } from './named-machines.ts';

/** The web server of a machine: returns the received request. */
const machine = createServer((request, response) => {
  if (request.url === '/slow') return;
  if (request.url === '/cut') {
    response.writeHead(200, { 'content-length': '10' });
    response.write('half', () => request.socket.resetAndDestroy());
    return;
  }
  void text(request).then((body) => {
    const { method, url, rawHeaders } = request;
    response.writeHead(201, 'Made', [
      'Set-Cookie',
      'a=1',
      'Set-Cookie',
      'b=2',
      'Content-Type',
      'application/json',
    ]);
    response.end(method === 'HEAD' ? undefined : JSON.stringify({ method, url, rawHeaders, body }));
  });
});
new WebSocketServer({ server: machine }).on('connection', (socket) => {
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
});

/** A machine that sends arbitrary bytes, and records its input. */
let said = '';
let heard = '';
const rawMachine = createTcpServer((socket) => {
  socket
    .on('error', () => {})
    .on('data', (bytes) => {
      if (heard === '') socket.write(said, 'latin1');
      heard += bytes.toString('latin1');
    });
});

let front: Server;
let dialed = 0;
const portOf = (server: TcpServer) => (server.address() as AddressInfo).port;

before(async () => {
  machine.listen(0, '127.0.0.1');
  rawMachine.listen(0, '127.0.0.1');
  await once(machine, 'listening');
  front = createServer((request, response) => {
    if (named.takes(request)) named.handle(request, response);
    else response.end('the data origin');
  });
  front.on('checkContinue', (request, response) => front.emit('request', request, response));
  const named = new NamedMachines({
    domain: 'apps.example.org',
    find: async (name) => {
      if (name === 'off') return 'stopped';
      const port = { web: portOf(machine), raw: portOf(rawMachine), dead: null }[name];
      if (port === undefined) return 'unknown';
      return async () => {
        dialed++;
        if (port === null) return null;
        const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
        socket.on('error', () => {});
        await once(socket, 'connect');
        return socket;
      };
    },
    proxies: new TrustedProxies([]),
    door: testDoor(),
  });
  serveUpgrades(front, [named]);
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
});
after(() => {
  machine.closeAllConnections();
  machine.close();
  rawMachine.close();
  front.closeAllConnections();
  front.close();
});

interface Asked {
  readonly host?: string;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
}

async function ask({ host = 'web.apps.example.org', method = 'GET', path = '/', headers = {}, body }: Asked) {
  const request = requestOf({
    port: portOf(front),
    host: '127.0.0.1',
    method,
    path,
    headers: { host, ...headers },
  });
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { response, status: response.statusCode, body: await text(response) };
}

function valuesOf(raw: readonly string[], name: string): string[] {
  return raw.filter((_, i) => i % 2 === 1 && raw[i - 1]?.toLowerCase() === name);
}

test('a request goes to the machine with method, path, fields and body, and its response comes back', async () => {
  const path = '/a//b%2F?q=%20x&q=2';
  const { response, status, body } = await ask({
    method: 'PUT',
    path,
    headers: { accept: 'x/y' },
    body: 'hello',
  });
  const got = JSON.parse(body);
  assert.deepEqual(
    [status, response.statusMessage, got.method, got.url, got.body],
    [201, 'Made', 'PUT', path, 'hello'],
  );
  assert.deepEqual(response.headers['set-cookie'], ['a=1', 'b=2']);
  assert.deepEqual(valuesOf(got.rawHeaders, 'accept'), ['x/y']);
  assert.deepEqual(valuesOf(got.rawHeaders, 'host'), ['web.apps.example.org']);
});

test('the machine is told who asks, and a client cannot say so itself', async () => {
  const claims = { 'x-forwarded-for': '6.6.6.6', 'x-forwarded-proto': 'https', forwarded: 'for=6.6.6.6' };
  const { body } = await ask({ headers: claims });
  const { rawHeaders } = JSON.parse(body);
  assert.deepEqual(valuesOf(rawHeaders, 'x-forwarded-for'), ['127.0.0.1']);
  assert.deepEqual(valuesOf(rawHeaders, 'x-forwarded-proto'), ['http']);
  assert.deepEqual(valuesOf(rawHeaders, 'x-forwarded-host'), ['web.apps.example.org']);
  assert.deepEqual(valuesOf(rawHeaders, 'forwarded'), []);
});

test('fields of one connection stay on it', async () => {
  const { body } = await ask({ headers: { connection: 'keep-alive, x-own', 'x-own': '1', te: 'trailers' } });
  const { rawHeaders } = JSON.parse(body);
  assert.deepEqual(valuesOf(rawHeaders, 'connection'), ['close']);
  for (const name of ['x-own', 'te', 'keep-alive']) assert.deepEqual(valuesOf(rawHeaders, name), [], name);
});

test('bodies without a length are passed in chunks, those of a DELETE too', async () => {
  for (const method of ['POST', 'DELETE']) {
    const { body } = await ask({ method, headers: { 'transfer-encoding': 'chunked' }, body: 'some bytes' });
    assert.equal(JSON.parse(body).body, 'some bytes', method);
  }
  const { body } = await ask({
    method: 'POST',
    headers: { expect: '100-continue', 'content-length': '2' },
    body: 'ok',
  });
  assert.equal(JSON.parse(body).body, 'ok');
});

test('HEAD has no body, and names of other cases and with ports are the same', async () => {
  assert.deepEqual(await ask({ method: 'HEAD' }).then(({ status, body }) => [status, body]), [201, '']);
  for (const host of ['WEB.Apps.Example.ORG', 'web.apps.example.org:9000', 'web.apps.example.org.']) {
    assert.equal((await ask({ host })).status, 201, host);
  }
});

test('what does not answer is told as a page or in plain text', async () => {
  for (const [name, status, words] of [
    ['nobody', 404, /No virtual machine/],
    ['web.deeper', 404, /No virtual machine/],
    ['off', 503, /not running/],
    ['dead', 502, /does not answer/],
  ] as const) {
    const host = `${name}.apps.example.org`;
    const plain = await ask({ host });
    assert.deepEqual(
      [plain.status, plain.response.headers['content-type']],
      [status, 'text/plain; charset=utf-8'],
    );
    assert.match(plain.body, words);
    const page = await ask({ host, headers: { accept: 'text/html' } });
    assert.match(page.body, /^<!doctype html>/);
    assert.match(page.body, words);
    assert.match(String(page.response.headers['content-security-policy']), /default-src 'none'/);
  }
});

test('other hosts are not taken, nor is the domain itself', async () => {
  for (const host of [
    'localhost',
    'apps.example.org',
    'web.apps.example.org.evil.test',
    'xapps.example.org',
  ]) {
    assert.equal((await ask({ host })).body, 'the data origin', host);
  }
});

test('a response that is cut by the machine is cut for the client too', async () => {
  await assert.rejects(ask({ path: '/cut' }), /aborted|ECONNRESET/);
});

test('a client that goes away ends the request of the machine', async () => {
  const [ended] = [once(machine, 'request').then(([request]) => once(request.socket, 'close'))];
  const socket = connect({ port: portOf(front), host: '127.0.0.1' });
  socket.write('GET /slow HTTP/1.1\r\nHost: web.apps.example.org\r\n\r\n');
  await once(machine, 'request');
  socket.destroy();
  await ended;
});

test('WebSockets pass both ways, and are refused where nothing runs', async () => {
  const url = `ws://127.0.0.1:${portOf(front)}/chat`;
  const socket = new WebSocket(url, { headers: { host: 'web.apps.example.org' } });
  await once(socket, 'open');
  const large = Buffer.alloc(300_000, 7);
  socket.send(large);
  const [echo] = await once(socket, 'message');
  assert.ok(large.equals(echo));
  socket.close();
  await once(socket, 'close');
  for (const [name, status] of [
    ['off', 503],
    ['nobody', 404],
    ['dead', 503],
  ] as const) {
    const refused = new WebSocket(url, { headers: { host: `${name}.apps.example.org` } });
    refused.on('error', () => {});
    const [, response] = await once(refused, 'unexpected-response');
    assert.equal(response.statusCode, status, name);
  }
  const before = dialed;
  const elsewhere = new WebSocket(url);
  elsewhere.on('error', () => {});
  const [, response] = await once(elsewhere, 'unexpected-response');
  assert.deepEqual([response.statusCode, dialed], [200, before]);
});

/** The responses to a proxy before us that sends `requests` one after the other on one connection. */
async function asProxy(...requests: readonly string[]): Promise<string> {
  const socket = connect({ port: portOf(front), host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  let answer = '';
  socket.on('data', (bytes) => {
    answer += bytes.toString('latin1');
  });
  for (const request of requests) {
    socket.write(request);
    await sleep(200);
  }
  socket.end();
  await Promise.race([once(socket, 'close'), sleep(2000, undefined, { ref: false })]);
  socket.destroy();
  return answer;
}

const UPGRADE = `GET / HTTP/1.1\r
Host: raw.apps.example.org\r
Connection: Upgrade\r
Upgrade: websocket\r
\r
`;
const VICTIM = 'GET /secret HTTP/1.1\r\nHost: s3.example.org\r\nAuthorization: of the victim\r\n\r\n';

test('a machine that does not switch hears nothing of the next request of a proxy', async () => {
  for (const status of ['200 OK', '401 No', '101', '200 Switching Protocols']) {
    heard = '';
    said = `HTTP/1.1 ${status}\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nno`;
    const answer = await asProxy(UPGRADE, VICTIM);
    assert.doesNotMatch(heard, /victim/, `${status}: ${heard}`);
    if (!status.startsWith('101')) {
      assert.ok(answer.startsWith(`HTTP/1.1 ${status}\r\n`), answer);
      assert.match(answer, /^connection: close\r$/im);
      assert.match(answer, /\r\n\r\nno$/);
    }
  }
});

test('an upgrade with a body is refused', async () => {
  heard = '';
  const answer = await asProxy(
    UPGRADE.replace('Upgrade: websocket', 'Upgrade: x\r\nContent-Length: 3'),
    'abc',
  );
  assert.match(answer, /^HTTP\/1\.1 400 .*connection: close/is);
  assert.equal(heard, '');
});

test('a response that cannot be passed on is none, and ends no process', async () => {
  const lines = [
    'HTTP/1.1 000 x',
    'HTTP/1.1 099 x',
    'HTTP/1.1 200 a\x01b',
    'HTTP/1.1 101 x',
    'HTTP/1.1 1000 x',
  ];
  for (const line of lines) {
    heard = '';
    said = `${line}\r\nUpgrade: x\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n`;
    assert.equal((await ask({ host: 'raw.apps.example.org' })).status, 502, line);
  }
  for (const field of ['A: \x01', 'B: \x7f', 'Content-Length: 1, 2', 'C\x00: d', 'Content-Length: -1']) {
    heard = '';
    said = `HTTP/1.1 200 OK\r\n${field}\r\n\r\n`;
    const { status } = await ask({ host: 'raw.apps.example.org' }).catch(() => ({ status: 502 }));
    assert.equal(status, 502, field);
  }
  assert.equal((await ask({})).status, 201);
});

test('a machine that sends interim responses without end has none', async () => {
  heard = '';
  said = 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(10_000);
  assert.equal((await ask({ host: 'raw.apps.example.org' })).status, 502);
});
