import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { taken } from './taken.ts';

const WAITS = 30;
const PIECE = Buffer.alloc(2 ** 20);

test('a slow client makes many waits, and none leaves a listener on its connection', async () => {
  const listeners: number[] = [];
  const server = createServer(async (_, response) => {
    for (let wait = 0; wait < WAITS; wait++) await taken(response, PIECE);
    listeners.push(response.listenerCount('drain'), response.listenerCount('close'));
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const idle = await new Promise<number>((resolve, reject) => {
      get({ port, host: '127.0.0.1' }, async (response) => {
        let bytes = 0;
        for await (const piece of response) bytes += piece.length;
        resolve(bytes);
      }).on('error', reject);
    });
    assert.equal(idle, WAITS * PIECE.length);
    assert.equal(listeners[0], 0);
    assert.ok((listeners[1] ?? WAITS) < 3, `${listeners[1]} listeners of close`);
  } finally {
    server.close();
  }
});

test('a wait ends with a connection that closes', async () => {
  const server = createServer(async (_, response) => {
    for (;;) {
      if (response.destroyed) return void server.emit('over');
      await taken(response, PIECE);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const over = once(server, 'over');
    const request = get({ port, host: '127.0.0.1' }, () => request.destroy()).on('error', () => {});
    await over;
  } finally {
    server.close();
  }
});
