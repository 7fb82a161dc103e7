/** One request under one Idempotency-Key at two nodes: one effect, and one response from both. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Idempotency } from '../calls/idempotency.ts';
import { IdempotencyStore } from '../calls/idempotency-store.ts';
import { Operations } from '../calls/operations.ts';
import { OperationsStore } from '../calls/operations-store.ts';
import { BACKGROUND } from '../metadata/change.ts';
import { systemClock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { Type } from '../platform/json/json-schema.ts';
import { ALONE } from '../platform/membership.ts';
import { type AccountFixture, openAccountFixture } from '../testing/account-fixture.ts';
import { testDoor } from '../testing/test-door.ts';
import { BodyMemory } from './bodies/body-memory.ts';
import { createEdge } from './edge.ts';
import { defineRoute, type RouteInput } from './route.ts';
import { operationRoutes } from './routes/operation-routes.ts';

const ROUNDS = 10;
const COMMON = { method: 'POST', tag: 'system', summary: 'Work', permission: 'account:write' } as const;
const Named = Type.Object({ name: Type.String() });

type Call = RouteInput<unknown, unknown, { name: string }>;
type Edge = ReturnType<typeof createEdge>;

let fixture: AccountFixture;
let nodes: Edge[];
let key = '';
/** Resolves once both nodes are about to commit, so that neither finds the record of the other earlier. */
let meet: () => Promise<void> = async () => {};

function bothMeet(): void {
  let waiting = 0;
  const both = Promise.withResolvers<void>();
  meet = () => {
    waiting++;
    if (waiting === 2) both.resolve();
    return both.promise;
  };
}

/** A unique name, like that of a bucket. */
async function makeNamed(call: Call) {
  await meet();
  const row = { sql: 'INSERT INTO settings (name, value) VALUES (?, ?)', params: [call.body.name, ''] };
  return fixture.changes.run(call, (change) => {
    change.add(row, () => new AppError('bucket_exists', 'There is one'));
    return { name: call.body.name, made: Math.random() };
  });
}

/** An effect that only the record of the response refuses, such as an upload over an upload. */
async function countUp(call: Call) {
  await meet();
  const sql = `INSERT INTO settings (name, value) VALUES (?, '1')
               ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(settings.value AS INTEGER) + 1 AS TEXT)`;
  return fixture.changes.run(call, (change) => {
    change.add({ sql, params: [call.body.name] });
    return { name: call.body.name, made: Math.random() };
  });
}

/** Work without its own commit. */
async function work({ body }: Call) {
  await meet();
  return { name: body.name, made: Math.random() };
}

async function refuse() {
  await meet();
  throw new AppError('bucket_not_found', `There is none: ${Math.random()}`);
}

const responses = { 201: Type.Object({}) };
const routes = [
  defineRoute({
    ...COMMON,
    path: '/api/named',
    name: 'makeNamed',
    body: Named,
    responses,
    handler: makeNamed,
  }),
  defineRoute({ ...COMMON, path: '/api/count', name: 'countUp', body: Named, responses, handler: countUp }),
  defineRoute({ ...COMMON, path: '/api/work', name: 'work', body: Named, responses, handler: work }),
  defineRoute({ ...COMMON, path: '/api/refuse', name: 'refuse', body: Named, responses, handler: refuse }),
];

function openNode(runId: string): Edge {
  const { metadata, sealer, clock, authenticator, apiKeys } = fixture;
  const membership = { ...ALONE, runId, isShared: true };
  const base = { metadata, membership, sealer, clock, maxKept: 1000 };
  const ownKeyState = apiKeys.ownKeyState.bind(apiKeys);
  const operations = new Operations({
    ...base,
    store: new OperationsStore(metadata),
    isOwner: apiKeys.ownsAccount.bind(apiKeys),
    onLost: (_, error) => assert.fail(String(error)),
  });
  return createEdge({
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
    routes: [...routes, ...operationRoutes({ operations })],
  });
}

before(async () => {
  fixture = await openAccountFixture();
  nodes = [openNode('nod-1'), openNode('nod-2')];
  const account = { username: 'ann', email: 'ann@x.org', password: 'correct horse' };
  key = (await fixture.accounts.register(BACKGROUND, account)).api_key ?? '';
});
after(async () => {
  for (const node of nodes) await node.close();
  await fixture.close();
});

interface Asked {
  readonly url: string;
  readonly name: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function askBoth(asked: Asked) {
  bothMeet();
  return askBothNow(asked);
}

async function askBothNow({ url, name, headers = {} }: Asked) {
  const all = { 'x-api-key': key, 'idempotency-key': `${url} ${name}`.replace(/\W/g, '-'), ...headers };
  const answers = await Promise.all(
    nodes.map((node) => node.inject({ method: 'POST', url, headers: all, payload: { name } })),
  );
  const replays = answers.map((answer) => answer.headers['idempotent-replayed'] ?? 'no');
  return { answers, replays: replays.sort() };
}

const storedValue = async (name: string) =>
  (await fixture.metadata.get<{ value: string }>('SELECT value FROM settings WHERE name = ?', name))?.value;

const CASES: readonly (readonly [what: string, url: string, effect: string | undefined])[] = [
  ['a name that only one gets', '/api/named', ''],
  ['an effect that could be had twice', '/api/count', '1'],
  ['work without its own commit', '/api/work', undefined],
];
for (const [what, url, effect] of CASES) {
  test(`${what}: twice the same response`, async () => {
    for (let i = 0; i < ROUNDS; i++) {
      const name = `${url.slice(5)}-${i}`;
      const { answers, replays } = await askBoth({ url, name });
      assert.deepEqual(
        answers.map(({ statusCode }) => statusCode),
        [201, 201],
        String(answers[0]?.body),
      );
      assert.equal(answers[0]?.body, answers[1]?.body);
      assert.deepEqual(replays, ['no', 'true']);
      assert.equal(await storedValue(name), effect);
    }
  });
}

test('a refusal is the same at both', async () => {
  for (let i = 0; i < ROUNDS; i++) {
    const { answers } = await askBoth({ url: '/api/refuse', name: `r-${i}` });
    assert.deepEqual(
      answers.map(({ statusCode }) => statusCode),
      [404, 404],
    );
    assert.equal(answers[0]?.body, answers[1]?.body);
  }
});

test('another request under the key is refused as such, not by the effect of the first', async () => {
  const ask = (i: number, name: string) =>
    nodes[i]?.inject({
      method: 'POST',
      url: '/api/named',
      headers: { 'x-api-key': key, 'idempotency-key': 'of-another' },
      payload: { name },
    });
  bothMeet();
  const answers = await Promise.all([ask(0, 'this'), ask(1, 'that')]);
  const codes = answers.map((answer) => answer?.json().code ?? 'made');
  assert.deepEqual(codes.sort(), ['idempotency_mismatch', 'made']);
});

test('accepted at both it is one operation, and has one effect', async () => {
  for (let i = 0; i < ROUNDS; i++) {
    const name = `accepted-${i}`;
    const asked = { url: '/api/count', name, headers: { prefer: 'respond-async' } };
    meet = async () => {};
    const { answers } = await askBothNow(asked);
    assert.deepEqual(
      answers.map(({ statusCode }) => statusCode),
      [202, 202],
    );
    const [id, other] = answers.map((answer) => answer.json().operation_id);
    assert.equal(id, other);
    assert.equal(answers[0]?.headers.location, answers[1]?.headers.location);
    for (const node of nodes) {
      const ended = await node.inject({
        url: `/api/operations/${id}?wait=60`,
        headers: { 'x-api-key': key },
      });
      assert.equal(ended.json().state, 'succeeded');
    }
    assert.equal(await storedValue(name), '1');
  }
});
