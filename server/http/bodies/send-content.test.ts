import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { AppError } from '../../platform/errors.ts';
import { problemHeaders, toAppError, toProblem } from '../response.ts';
import { type SentContent, sendContent } from './send-content.ts';

let begun = 0;
let sent = 0;
const BYTES = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 251));
const CREATED = Date.UTC(2026, 0, 1, 12, 0, 0, 700);
const MODIFIED = 'Thu, 01 Jan 2026 12:00:00 GMT';
const base: SentContent = {
  sizeBytes: BYTES.length,
  etag: 'e1',
  mimeType: 'image/png',
  createdAt: CREATED,
  inline: BYTES,
  disposition: 'attachment; filename=x',
  caching: 'no-store',
  read: () => assert.fail('inline bytes are not read'),
  onBegin: () => {
    begun++;
  },
  onSent: (bytes) => {
    sent += bytes;
  },
};
/** The same bytes in chunks of 300, as from a file. */
const streamed: SentContent = {
  ...base,
  inline: null,
  async read({ start, end }, sink) {
    for (let at = start; at < end; at += 300) await sink(BYTES.subarray(at, Math.min(end, at + 300)));
  },
};

let app: FastifyInstance;

let content = base;
/** The end of the last response. */
let handled = Promise.withResolvers<void>();
handled.promise.catch(() => {});
/** Settled by /when-gone. */
const answered = Promise.withResolvers<void>();
let url = '';
let port = 0;
before(async () => {
  app = Fastify({ exposeHeadRoutes: false });
  app.decorateRequest('responseHeaders', null as never);
  app.setErrorHandler((thrown, request, reply) => {
    const error = toAppError(thrown);
    const problem = toProblem(error, request.id);
    return reply.headers(problemHeaders(error)).code(problem.status).send(problem);
  });
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    request.responseHeaders = { 'x-request-id': 'r' };
    const sending = sendContent(request, reply, content);
    handled.resolve(sending);
    await sending;
    return reply;
  };
  app.route({ method: ['GET', 'HEAD'], url: '/', handler });
  app.get('/when-gone', async (request, reply) => {
    const gone = once(request.raw.socket, 'close');
    request.raw.socket.write('HTTP/1.1 103 Early Hints\r\n\r\n');
    await gone;
    await handler(request, reply);
    answered.resolve();
    return reply;
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  ({ port } = app.server.address() as AddressInfo);
  url = `http://127.0.0.1:${port}/`;
});
after(async () => {
  app.server.closeAllConnections();
  await app.close();
});

const bodyOf = async (response: Response) => Buffer.from(await response.arrayBuffer());

for (const kind of ['inline', 'streamed'] as const) {
  const own = kind === 'inline' ? base : streamed;

  test(`${kind}: all bytes come with their headers, and HEAD has the headers alone`, async () => {
    content = own;
    begun = 0;
    sent = 0;
    for (const method of ['GET', 'HEAD']) {
      const response = await fetch(url, { method });
      const { headers } = response;
      assert.equal(response.status, 200);
      assert.deepEqual(
        ['etag', 'last-modified', 'accept-ranges', 'content-type', 'content-length', 'x-request-id'].map(
          (name) => headers.get(name),
        ),
        ['"e1"', MODIFIED, 'bytes', 'image/png', '1000', 'r'],
      );
      assert.equal(headers.get('content-disposition'), 'attachment; filename=x');
      assert.ok((await bodyOf(response)).equals(method === 'GET' ? BYTES : Buffer.alloc(0)));
      assert.deepEqual([begun, sent], [1, 1000], 'only what was sent counts');
    }
  });

  test(`${kind}: a range gives those bytes, one beyond the end is 416, several give all`, async () => {
    content = own;
    const cases: readonly [string, number, number][] = [
      ['bytes=0-0', 0, 1],
      ['bytes=299-300', 299, 301],
      ['bytes=990-', 990, 1000],
      ['bytes=-10', 990, 1000],
      ['bytes=0-99999', 0, 1000],
    ];
    for (const [range, start, end] of cases) {
      const response = await fetch(url, { headers: { range } });
      assert.equal(response.status, 206);
      assert.equal(response.headers.get('content-range'), `bytes ${start}-${end - 1}/1000`);
      assert.equal(response.headers.get('content-length'), String(end - start));
      assert.ok((await bodyOf(response)).equals(BYTES.subarray(start, end)));
    }
    begun = 0;
    const beyond = await fetch(url, { headers: { range: 'bytes=1000-' } });
    assert.deepEqual([beyond.status, beyond.headers.get('content-range')], [416, 'bytes */1000']);
    await beyond.text();
    assert.equal(begun, 0);
    const several = await fetch(url, { headers: { range: 'bytes=0-1,5-6' } });
    assert.equal(several.status, 200);
    assert.ok((await bodyOf(several)).equals(BYTES));
  });
}

test('HEAD knows no ranges (RFC 9110 §14.2), not even wrong ones', async () => {
  content = base;
  for (const range of ['bytes=0-9', 'bytes=-1', 'bytes=1000-']) {
    const { status, headers } = await fetch(url, { method: 'HEAD', headers: { range } });
    assert.deepEqual([status, headers.get('content-length')], [200, '1000'], range);
    assert.equal(headers.get('content-range'), null, range);
  }
});

test('conditions: what the reader has already is not sent, what it does not expect is refused', async () => {
  content = base;
  const cases: readonly [Record<string, string>, number][] = [
    [{ 'if-none-match': '"e1"' }, 304],
    [{ 'if-none-match': '"x", W/"e1"' }, 304],
    [{ 'if-none-match': '*' }, 304],
    [{ 'if-none-match': '"x"' }, 200],
    [{ 'if-modified-since': MODIFIED }, 304],
    [{ 'if-modified-since': 'Thu, 01 Jan 2026 11:59:59 GMT' }, 200],
    [{ 'if-modified-since': 'nonsense' }, 200],
    [{ 'if-none-match': '"x"', 'if-modified-since': MODIFIED }, 200],
    [{ 'if-match': '"e1"' }, 200],
    [{ 'if-match': '"x"' }, 412],
    [{ 'if-unmodified-since': MODIFIED }, 200],
    [{ 'if-unmodified-since': 'Thu, 01 Jan 2026 11:59:59 GMT' }, 412],
    [{ range: 'bytes=0-0', 'if-range': '"e1"' }, 206],
    [{ range: 'bytes=0-0', 'if-range': MODIFIED }, 206],
    [{ range: 'bytes=0-0', 'if-range': '"x"' }, 200],
    [{ range: 'bytes=0-0', 'if-range': 'W/"e1"' }, 200],
  ];
  for (const [headers, status] of cases) {
    begun = 0;
    const response = await fetch(url, { headers });
    assert.equal(response.status, status, JSON.stringify(headers));
    assert.equal(begun, status < 300 ? 1 : 0, JSON.stringify(headers));
    if (status === 304) assert.equal((await bodyOf(response)).length, 0);
    else await response.arrayBuffer();
  }
});

test('damage found before the first byte is its own problem', async () => {
  const read = () => Promise.reject(new AppError('data_corrupted', 'damaged'));
  content = { ...streamed, read };
  const response = await fetch(url);
  assert.equal(response.status, 500);
  assert.equal(((await response.json()) as { code: string }).code, 'data_corrupted');
});

test('damage found later cuts the connection: the body never looks whole', async () => {
  content = {
    ...streamed,
    async read(_range, sink) {
      await sink(BYTES.subarray(0, 300));
      throw new AppError('data_corrupted', 'damaged');
    },
  };
  const signal = AbortSignal.timeout(5000);
  const response = await fetch(url, { signal });
  await assert.rejects(response.arrayBuffer(), (error: Error) => error.name !== 'TimeoutError');
});

test('what is in memory is not counted as sent to a reader who left before', async () => {
  content = base;
  sent = 0;
  const socket = connect(port, '127.0.0.1');
  socket.write('GET /when-gone HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await once(socket, 'data');
  socket.destroy();
  await answered.promise;
  assert.equal(sent, 0);
});

test('a reader that leaves stops the reading, and is no failure', async () => {
  handled = Promise.withResolvers();
  const stopped = Promise.withResolvers<void>();
  content = {
    ...streamed,
    sizeBytes: 2 ** 40,
    async read(_range, sink, signal) {
      try {
        for (;;) {
          signal.throwIfAborted();
          await sink(Buffer.alloc(65_536));
        }
      } finally {
        stopped.resolve();
      }
    },
  };
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await once(socket, 'readable');
  socket.destroy();
  await stopped.promise;
  await handled.promise;
});

test('a reader that does not read holds the reading up', async () => {
  let sent = 0;
  content = {
    ...streamed,
    sizeBytes: 2 ** 40,
    async read(_range, sink, signal) {
      for (;;) {
        signal.throwIfAborted();
        await sink(Buffer.alloc(65_536));
        sent += 65_536;
      }
    },
  };
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await once(socket, 'readable');
  let before = -1;
  while (before !== sent) {
    before = sent;
    await sleep(200);
  }
  assert.ok(sent < 64 * 2 ** 20, `${sent} bytes for a reader that reads nothing`);
  socket.destroy();
});
