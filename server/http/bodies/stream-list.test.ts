import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import Fastify from 'fastify';
import { eventually } from '../../testing/eventually.ts';
import { streamList } from '../response.ts';

interface Served {
  readonly port: number;
  readonly url: string;
  /** Settles like streamList. */
  readonly finished: Promise<unknown>;
}

/** Answers GET / with `entries`, on a real socket. */
async function serve(entries: AsyncIterable<string>, use: (served: Served) => Promise<void>): Promise<void> {
  const app = Fastify();
  app.decorateRequest('responseHeaders', null as never);
  const { promise: finished, resolve, reject } = Promise.withResolvers<unknown>();
  finished.catch(() => {});
  app.get('/', async (request, reply) => {
    request.responseHeaders = { 'x-request-id': 'req-1' };
    await streamList(request, reply, entries).then(resolve, (error) => {
      reject(error);
      throw error;
    });
    return reply;
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  try {
    await use({ port, url: `http://127.0.0.1:${port}/`, finished });
  } finally {
    app.server.closeAllConnections();
    await app.close();
  }
}

async function* numbers(count: number, text = ''): AsyncGenerator<string> {
  for (let i = 0; i < count; i++) yield JSON.stringify(`${i}${text}`);
}

for (const count of [0, 1, 2, 30_000]) {
  test(`${count} entries are one JSON array`, async () => {
    await serve(numbers(count, 'x'.repeat(20)), async ({ url }) => {
      const response = await fetch(url);
      assert.equal(response.status, 200);
      assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
      assert.equal(response.headers.get('x-request-id'), 'req-1');
      const list = (await response.json()) as string[];
      assert.equal(list.length, count);
      for (const [at, entry] of list.entries()) assert.ok(entry.startsWith(`${at}x`));
    });
  });
}

test('an error before the first entry is still its own answer', async () => {
  const failure = Object.assign(new Error('no such list'), { statusCode: 404 });
  const entries = (async function* () {
    yield await Promise.reject<string>(failure);
  })();
  await serve(entries, async ({ url }) => {
    const response = await fetch(url);
    assert.equal(response.status, 404);
    await response.text();
  });
});

test('an error later cuts the connection: a broken list never looks whole', async () => {
  const entries = (async function* () {
    yield* numbers(20_000, 'x'.repeat(20));
    throw new Error('the database went away');
  })();
  await serve(entries, async ({ url, finished }) => {
    const response = await fetch(url);
    await assert.rejects(response.text());
    await finished;
  });
});

/** Counts the requests to it, and reports when it was closed. */
function endless(pause: () => Promise<void>) {
  const state = { given: 0, closed: false };
  const entries = (async function* () {
    try {
      for (;;) {
        await pause();
        state.given++;
        yield JSON.stringify('x'.repeat(64 * 1024));
      }
    } finally {
      state.closed = true;
    }
  })();
  return { state, entries };
}

test('a reader that stops reading stops the list, and one that leaves ends it', async () => {
  const { state, entries } = endless(() => sleep(0));
  await serve(entries, async ({ port, finished }) => {
    const socket = connect(port, '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(socket, 'readable');
    socket.pause();
    let before = -1;
    while (before !== state.given) {
      before = state.given;
      await sleep(200);
    }
    assert.ok(state.given < 1000, `${state.given} entries for a reader that reads nothing`);
    assert.equal(state.closed, false);
    socket.destroy();
    await finished;
    assert.equal(state.closed, true);
  });
});

test('a reader that leaves while the next entry is looked for ends it too', async () => {
  let left: Promise<unknown> = Promise.resolve();
  const { state, entries } = endless(async () => {
    await left;
  });
  await serve(entries, async ({ port, finished }) => {
    const gone = Promise.withResolvers<void>();
    left = gone.promise;
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await sleep(50);
    socket.destroy();
    await sleep(100);
    gone.resolve();
    await finished;
    await eventually(() => state.closed);
  });
});
