/** The part of a request that reaches the next server, byte by byte: it must be one request there, too. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Server as NetServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { NOBODY } from '../../calls/principal.ts';
import { NodeLinks } from '../../drivers/node-proxy/node-links.ts';
import type { NodeView } from '../../platform/membership.ts';
import type { Exchange } from '../exchange.ts';
import { endToEnd } from './end-to-end.ts';
import { Forward } from './forward.ts';

const HIDDEN = 'GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n';

async function listening(t: TestContext, server: Server | NetServer): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A node that forwards everything, and the requests that arrive at its host. */
async function openPair(t: TestContext) {
  const arrived: { method: string | undefined; url: string | undefined; body: string }[] = [];
  const host = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    arrived.push({ method: request.method, url: request.url, body: Buffer.concat(parts).toString() });
    response.end();
  });
  const url = await listening(t, host);
  const view = { isHost: true, state: 'up', runId: 'host', url, beatAgeMs: 0 } as NodeView;
  const links = new NodeLinks();
  t.after(() => links.close());
  const forward = new Forward({
    membership: { nodes: () => [view], isGone: () => false },
    calls: { sign: () => 'signed' },
    links,
    proxies: { isSecure: () => false },
    control: new WeakSet(),
    newId: () => 'req-1',
    most: 10,
  });
  const front = createServer((raw, response) => {
    const exchange = { id: 'req-1', raw, address: '192.0.2.1', principal: NOBODY, responseHeaders: {} };
    void forward.pass({ exchange: exchange as unknown as Exchange, origin: 'api' }, response);
  });
  return { arrived, port: Number(new URL(await listening(t, front)).port) };
}

async function send(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(text);
  const [answer] = await once(socket, 'data');
  socket.destroy();
  return String(answer);
}

test('a body stays the body of its request, whatever Connection names', async (t) => {
  const { arrived, port } = await openPair(t);
  const methods = ['GET', 'DELETE', 'OPTIONS', 'POST'];
  for (const method of methods) {
    const length = `Connection: keep-alive, Content-Length, host\r\nContent-Length: ${HIDDEN.length}`;
    const answer = await send(port, `${method} /seen HTTP/1.1\r\nHost: a\r\n${length}\r\n\r\n${HIDDEN}`);
    assert.match(answer, /^HTTP\/1.1 200/);
  }
  const expected = methods.map((method) => ({ method, url: '/seen', body: HIDDEN }));
  assert.deepEqual(arrived, expected);
});

test('fields of one connection are not passed on, nor what only proxies may say', () => {
  const fields = ['Connection', 'x-hop , Close', 'X-Hop', '1', 'X-Note', '2', 'X-Forwarded-For', '192.0.2.1'];
  assert.deepEqual(endToEnd(fields), ['X-Note', '2']);
});
