import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { reset } from './relay.ts';

test('a connection whose end is under way is closed by a reset all the same', async () => {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => {});
  const [socket] = await accepted;
  const faults: Error[] = [];
  socket.on('error', (error) => faults.push(error));
  const closed = once(socket, 'close', { signal: AbortSignal.timeout(10_000) });
  socket.end();
  reset(socket);
  await closed;
  assert.deepEqual(faults, []);
  client.destroy();
  server.close();
});
