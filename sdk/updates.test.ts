import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { type WebSocket, WebSocketServer } from 'ws';
import { type ChangedThing, createCloud } from './index.ts';

test('changes are reported, and a connection that is lost is opened again', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const notified: string[] = [];
  const cloud = createCloud({ baseUrl: `http://127.0.0.1:${port}`, apiKey: 'clk_1' });
  const things: ChangedThing[] = [{ kind: 'vm', id: 'vm-1' }];
  const first = once(server, 'connection');
  const stop = cloud.watchUpdates({
    sync: () => notified.push('sync'),
    changed: (changed) => {
      notified.push(...changed.map(({ id }) => id));
      for (const client of server.clients) client.terminate();
    },
    lost: () => notified.push('lost'),
  });
  const [socket, request] = await first;
  assert.deepEqual([request.url, request.headers['x-api-key']], ['/api/updates', 'clk_1']);
  const second = once(server, 'connection');
  for (const message of [{ type: 'sync' }, { type: 'alive' }, { type: 'changed', things }]) {
    (socket as WebSocket).send(JSON.stringify(message));
  }
  const [again] = await second;
  assert.deepEqual(notified, ['sync', 'vm-1', 'lost']);
  const closed = once(again as WebSocket, 'close');
  stop();
  await closed;
  assert.deepEqual(notified, ['sync', 'vm-1', 'lost'], 'who stopped is notified of nothing');
  server.close();
});
