import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { after, before, test } from 'node:test';
import { pino } from 'pino';
import { NOBODY } from '../calls/principal.ts';
import { systemClock } from '../platform/clock.ts';
import { Type } from '../platform/json-schema.ts';
import { Meters } from '../platform/prometheus.ts';
import { eventually } from '../testing/eventually.ts';
import { BodyMemory } from './body-memory.ts';
import { createEdge } from './edge.ts';
import { UnreadResponses } from './response.ts';
import { defineRoute } from './route.ts';

/** More than the buffers of a connection hold. */
const LARGE_BYTES = 32 * 2 ** 20;
let app: ReturnType<typeof createEdge>;
let port = 0;
before(async () => {
  const route = defineRoute({
    method: 'GET',
    path: '/api/large',
    name: 'large',
    tag: 'system',
    summary: 'Something large',
    permission: 'authenticated',
    responses: { 200: Type.String() },
    handler: async () => 'x'.repeat(LARGE_BYTES),
  });
  const accountOf = (apiKey = '') => ({ ...NOBODY, accountId: Number(apiKey), via: 'key' as const });
  app = createEdge({
    bodies: new BodyMemory(2 ** 26, systemClock),
    clock: systemClock,
    log: pino({ level: 'silent' }),
    meters: new Meters(),
    accounts: { authenticate: ({ apiKey }) => accountOf(apiKey), isCurrent: () => true },
    // No request of these tests has an Idempotency-Key or prefers to be answered early.
    idempotency: undefined as never,
    operations: undefined as never,
    control: new WeakSet(),
    publicUrl: '',
    limiter: null,
    unread: new UnreadResponses(2.5 * LARGE_BYTES),
    routeLimiters: new Map(),
    routes: [route],
    headers: {},
    trustedProxies: [],
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  ({ port } = app.server.address() as AddressInfo);
});
after(() => app.close());

/** Asks, and reads no more than how the response begins. */
async function ask(account: number) {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(`GET /api/large HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${account}\r\n\r\n`);
  const [start] = await once(socket, 'data');
  socket.pause();
  return { socket, status: Number(String(start).split(' ', 2)[1]) };
}

test('large responses that an account does not read are bounded, and cost other accounts nothing', async (t) => {
  const unread = [await ask(1), await ask(1)];
  t.after(() => unread.forEach(({ socket }) => void socket.destroy()));
  assert.deepEqual(
    unread.map(({ status }) => status),
    [200, 200],
  );
  unread.push(await ask(1), await ask(2));
  assert.deepEqual(
    unread.slice(2).map(({ status }) => status),
    [503, 200],
  );
  unread[0]?.socket.resume();
  await eventually(async () => {
    const { socket, status } = await ask(1);
    socket.destroy();
    return status === 200;
  });
});
