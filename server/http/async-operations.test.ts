import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { after, before, test } from 'node:test';
import { Idempotency } from '../calls/idempotency.ts';
import { IdempotencyStore } from '../calls/idempotency-store.ts';
import { Operations } from '../calls/operations.ts';
import { OperationsStore } from '../calls/operations-store.ts';
import { BACKGROUND } from '../metadata/change.ts';
import { systemClock } from '../platform/clock.ts';
import { AppError, type ErrorCode } from '../platform/errors.ts';
import { Type } from '../platform/json/json-schema.ts';
import { type AccountFixture, openAccountFixture } from '../testing/account-fixture.ts';
import { eventually } from '../testing/eventually.ts';
import { testDoor } from '../testing/test-door.ts';
import { BodyMemory } from './bodies/body-memory.ts';
import { createEdge } from './edge.ts';
import { defineRoute } from './route.ts';
import { operationRoutes } from './routes/operation-routes.ts';

let fixture: AccountFixture;
let app: ReturnType<typeof createEdge>;
let key = '';
/** The next action of the only route. */
let work: (address: () => string) => Promise<object>;
const addresses: string[] = [];

before(async () => {
  fixture = await openAccountFixture();
  const { metadata, sealer, clock, authenticator, apiKeys } = fixture;
  const isOwner = apiKeys.ownsAccount.bind(apiKeys);
  const ownKeyState = apiKeys.ownKeyState.bind(apiKeys);
  const base = { metadata, sealer, clock, maxKept: 1000 };
  const operations = new Operations({
    ...base,
    store: new OperationsStore(metadata),
    isOwner,
    onLost: (_, error) => assert.fail(String(error)),
  });
  const route = defineRoute({
    method: 'POST',
    path: '/api/work',
    name: 'work',
    tag: 'system',
    summary: 'Work',
    permission: 'account:write',
    body: Type.Object({ n: Type.Optional(Type.Integer()) }),
    responses: { 200: Type.Object({}) },
    handler: ({ request }) => work(() => request.address),
  });
  app = createEdge({
    bodies: new BodyMemory(2 ** 26, systemClock),
    clock,
    door: testDoor(),
    limitsCalls: true,
    accounts: authenticator,
    operations,
    idempotency: new Idempotency({ ...base, store: new IdempotencyStore(metadata), ownKeyState }),
    control: new WeakSet(),
    publicUrl: '',
    routeLimiters: new Map(),
    trustedProxies: [],
    routes: [route, ...operationRoutes({ operations })],
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const account = { username: 'ann', email: 'ann@x.org', password: 'correct horse' };
  key = (await fixture.accounts.register(BACKGROUND, account)).api_key ?? '';
});
after(async () => {
  await app.close();
  await fixture.close();
});

async function ask(headers: Record<string, string>) {
  const all = { 'x-api-key': key, ...headers };
  const response = await app.inject({ method: 'POST', url: '/api/work', headers: all, payload: {} });
  return { status: response.statusCode, body: response.json() };
}

async function ended(operationId: string) {
  const url = `/api/operations/${operationId}?wait=60`;
  return (await app.inject({ url, headers: { 'x-api-key': key } })).json();
}

const fails = (code: ErrorCode) => async () => {
  throw new AppError(code, 'no');
};

test('a refusal for now is not kept under the key, as it is not without the preference', async () => {
  for (const [i, code] of (['vm_locked', 'engine_unavailable', 'invalid_request'] as const).entries()) {
    const headers = { prefer: 'respond-async', 'idempotency-key': `now-${i}` };
    work = fails(code);
    const first = await ask(headers);
    assert.equal((await ended(first.body.operation_id)).error.code, code);
    work = async () => ({ done: true });
    const second = await ask(headers);
    assert.notEqual(second.body.operation_id, first.body.operation_id);
    assert.deepEqual((await ended(second.body.operation_id)).result, { done: true });
    assert.deepEqual(await ask(headers), second);
  }
});

test('a refusal that is a decision is', async () => {
  const headers = { prefer: 'respond-async', 'idempotency-key': 'decided' };
  work = fails('bucket_exists');
  const first = await ask(headers);
  await ended(first.body.operation_id);
  work = async () => ({ done: true });
  assert.deepEqual(await ask(headers), first);
});

test('what is our fault is reported in no detail', async () => {
  work = async () => {
    throw new Error('secret');
  };
  const { body } = await ask({ prefer: 'respond-async' });
  const { state, error } = await ended(body.operation_id);
  assert.deepEqual([state, error.code], ['failed', 'internal_error']);
  assert.doesNotMatch(JSON.stringify(error), /secret/);
});

test('the work goes on when its client leaves, and still knows from where it was asked', async () => {
  const left = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  work = async (address) => {
    begun.resolve();
    await left.promise;
    addresses.push(address());
    return {};
  };
  const { port } = app.server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(
    `POST /api/work HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${key}\r\nPrefer: respond-async\r\n\r\n`,
  );
  await begun.promise;
  socket.resetAndDestroy();
  await eventually(async () => (await connectionsOf()) === 0);
  left.resolve();
  await eventually(() => addresses.length === 1);
  assert.deepEqual(addresses, ['127.0.0.1']);
});

function connectionsOf(): Promise<number> {
  return new Promise((resolve, reject) =>
    app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}
