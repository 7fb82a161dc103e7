import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Idempotency } from '../calls/idempotency.ts';
import { IdempotencyStore } from '../calls/idempotency-store.ts';
import { BodyMemory } from '../http/bodies/body-memory.ts';
import { createEdge } from '../http/edge.ts';
import { BACKGROUND } from '../metadata/change.ts';
import { systemClock } from '../platform/clock.ts';
import { type AccountFixture, openAccountFixture, testTickets } from '../testing/account-fixture.ts';
import { testDoor } from '../testing/test-door.ts';
import { adminRoutes } from './admin-routes.ts';
import { setupRoutes } from './links/link-routes.ts';
import { accountRoutes } from './routes.ts';

let fixture: AccountFixture;
let app: ReturnType<typeof createEdge>;
before(async () => {
  fixture = await openAccountFixture();
  const { metadata, sealer, clock, authenticator, administration } = fixture;
  const store = new IdempotencyStore(metadata);
  const ownKeyState = fixture.apiKeys.ownKeyState.bind(fixture.apiKeys);
  const tickets = testTickets(clock);
  app = createEdge({
    bodies: new BodyMemory(2 ** 26, systemClock),
    clock,
    door: testDoor(),
    limitsCalls: true,
    accounts: authenticator,
    idempotency: new Idempotency({ metadata, store, sealer, clock, maxKept: 1000, ownKeyState }),
    operations: undefined as never, // no request of these tests prefers to be answered early
    tickets,
    control: new WeakSet(),
    publicUrl: '',
    routeLimiters: new Map(),
    routes: [
      ...accountRoutes({ ...fixture, tickets, secureCookies: false, publicUrl: '' }),
      ...setupRoutes({ ...fixture, apiUrl: () => 'http://cloud' }),
      ...adminRoutes({ closings: fixture.closings, administration }),
    ],
    trustedProxies: [],
  });
});
after(async () => {
  await app.close();
  await fixture.close();
});

interface Call {
  readonly key?: string | null;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

async function call(line: string, { key, body, headers = {} }: Call = {}) {
  const [method = '', url = ''] = line.split(' ');
  const response = await app.inject({
    method: method as Method,
    url,
    headers: { ...(key ? { 'x-api-key': key } : {}), ...headers },
    ...(body === undefined ? {} : { payload: body as object }),
  });
  return { status: response.statusCode, headers: response.headers, body: JSON.parse(response.body) };
}

const password = 'a good password';
let made = 0;

async function register(username = `user-${++made}`) {
  const unknown = { is_admin: true, credits: 1e6, id: 1, plan: 'gold' };
  const fields = { username, email: `${username}@example.com`, password, ...unknown };
  const { status, body } = await call('POST /api/register', { body: fields });
  assert.equal(status, 201);
  return body as { id: number; username: string; api_key: string; credits: number };
}

async function administrator() {
  const username = `admin-${++made}`;
  const fields = { username, email: `${username}@example.com`, isAdmin: true };
  return (await fixture.administration.create(BACKGROUND, fields)).api_key ?? '';
}

/** Members of an account beyond those of its registration, as long as it has credits. */
const IN_ORDER = {
  is_admin: false,
  is_auditor: false,
  credits_held: 0,
  billing_state: 'ok',
  credits_exhausted_at: null,
  grace_ends_at: null,
  email_confirmed: false,
  mail_about: [],
};

// First, because a set-up link works only while there is no administrator.
test('set-up over HTTP', async () => {
  const earlier = await fixture.setupLinks.createSetupLink(BACKGROUND, (made) => made);
  const token = await fixture.setupLinks.createSetupLink(BACKGROUND, (made) => made);
  assert.equal(await fixture.setupLinks.isGood(earlier), false);
  const body = { token, username: 'operator', email: 'operator@example.com', password };
  const wrong = await call('POST /api/setup', { body: { ...body, token: 'x' } });
  assert.deepEqual([wrong.status, wrong.body.code], [403, 'invalid_link']);
  const done = await call('POST /api/setup', { body });
  assert.deepEqual([done.status, done.body.is_admin], [201, true]);
  assert.equal((await call('GET /api/admin/accounts', { key: done.body.api_key })).status, 200);
  assert.equal((await call('POST /api/setup', { body: { ...body, username: 'op2' } })).status, 403);
});

test('register: 201 with the contract’s members and no more; unknown members change nothing', async () => {
  const account = await register();
  assert.deepEqual(Object.keys(account), [
    'id',
    'username',
    'email',
    'api_key',
    'plan',
    'credits',
    'is_active',
    'created_at',
    'last_login',
  ]);
  assert.equal(account.credits, 10);
  const { body } = await call('GET /api/account', { key: account.api_key });
  const { canonical_id, display_name } = body;
  assert.match(canonical_id, /^[0-9a-f]{64}$/);
  assert.equal(display_name, account.username);
  assert.deepEqual(body, { ...account, ...IN_ORDER, canonical_id, display_name });
  assert.deepEqual((await call('GET /api/profile', { key: account.api_key })).body, body);
});

test('register: every wrong field in one answer; wrong types; taken', async () => {
  const bad = await call('POST /api/register', { body: { username: 'a', email: 'b', password: 'c' } });
  assert.equal(bad.status, 400);
  assert.deepEqual(bad.body.errors.map((problem: { field: string }) => problem.field).sort(), [
    'email',
    'password',
    'username',
  ]);
  const types = await call('POST /api/register', { body: { username: 12345, email: true, password: null } });
  assert.equal(types.status, 400);
  assert.equal(types.body.errors.length, 3);
  const missing = await call('POST /api/register', { body: {} });
  assert.equal(missing.body.errors.length, 3);
  const { username } = await register();
  const taken = await call('POST /api/register', {
    body: { username: username.toUpperCase(), email: 'free@example.com', password },
  });
  assert.deepEqual([taken.status, taken.body.code], [409, 'username_taken']);
});

test('register with an Idempotency-Key: one account, the same answer and key', async () => {
  const body = { username: 'retried', email: 'retried@example.com', password };
  const headers = { 'idempotency-key': 'abc' };
  const [first, second] = [
    await call('POST /api/register', { body, headers }),
    await call('POST /api/register', { body, headers }),
  ];
  assert.deepEqual([first.status, second.status], [201, 201]);
  assert.deepEqual(second.body, first.body);
  const other = await call('POST /api/register', { body: { ...body, password: `${password}!` }, headers });
  assert.equal(other.status, 422);
});

/** The headers of a page with a session. */
function sessionOf({ headers, body }: Awaited<ReturnType<typeof call>>): Record<string, string> {
  const cookie = String(headers['set-cookie']).split(';')[0] ?? '';
  return { cookie, 'cloudlet-session': body.session_token, 'sec-fetch-site': 'same-origin' };
}

test('login and logout have their effect each time, whatever Idempotency-Key comes with them', async () => {
  const { username } = await register();
  const headers = { 'idempotency-key': 'the same' };
  const sessions: Record<string, string>[] = [];
  for (let i = 0; i < 2; i++) {
    const login = await call('POST /api/login', { body: { username, password }, headers });
    assert.equal(login.status, 200);
    sessions.push(sessionOf(login));
  }
  assert.notEqual(sessions[0]?.cookie, sessions[1]?.cookie);
  assert.notEqual(sessions[0]?.['cloudlet-session'], sessions[1]?.['cloudlet-session']);
  for (const session of sessions) {
    assert.equal((await call('GET /api/account', { headers: session })).status, 200);
    await call('POST /api/logout', { headers: { ...headers, ...session } });
    assert.equal((await call('GET /api/account', { headers: session })).status, 401);
  }
});

test('login sets a cookie that works, logout ends it', async () => {
  const { username, id } = await register();
  const login = await call('POST /api/login', { body: { username, password } });
  assert.equal(login.status, 200);
  assert.equal(login.body.last_login, '2026-01-01 00:00:00');
  const cookie = String(login.headers['set-cookie']);
  assert.match(cookie, /^cloudlet_session=[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Lax$/);
  const headers = sessionOf(login);
  assert.equal((await call('GET /api/account', { headers })).body.id, id);
  const byEmail = await call('POST /api/login', { body: { email: `${username}@EXAMPLE.com`, password } });
  assert.equal(byEmail.status, 200);
  const logout = await call('POST /api/logout', { headers });
  assert.deepEqual([logout.status, logout.body], [200, {}]);
  assert.match(String(logout.headers['set-cookie']), /^cloudlet_session=; .*Max-Age=0/);
  assert.equal((await call('GET /api/account', { headers })).status, 401);
  assert.equal((await call('POST /api/logout', { headers })).status, 200);
});

test('login refusals: 400 without a name, 401 alike, 429 with Retry-After', async () => {
  const { username } = await register();
  assert.equal((await call('POST /api/login', { body: { password } })).status, 400);
  const answers = [];
  for (const name of [username, 'nobody-at-all']) {
    const { status, body } = await call('POST /api/login', { body: { username: name, password: 'wrong' } });
    answers.push({ status, ...body, request_id: '' });
  }
  assert.equal(answers[0].status, 401);
  assert.deepEqual(answers[0], answers[1]);
  for (let i = 0; i < 9; i++) await call('POST /api/login', { body: { username, password: 'wrong' } });
  const slowed = await call('POST /api/login', { body: { username, password } });
  assert.deepEqual([slowed.status, slowed.body.code], [429, 'rate_limited']);
  assert.ok(Number(slowed.headers['retry-after']) >= 1);
});

test('rotate, change and close over HTTP', async () => {
  const account = await register();
  const rotated = await call('POST /api/account/api-key', { key: account.api_key });
  assert.equal(rotated.status, 200);
  assert.equal((await call('GET /api/account', { key: account.api_key })).status, 401);
  const key = rotated.body.api_key;
  for (const overlap of [-1, 2_592_001, 1.5, '5', null]) {
    const body = { overlap_seconds: overlap };
    assert.equal((await call('POST /api/account/api-key', { key, body })).status, 400, String(overlap));
  }
  const wrong = { password: 'another password', current_password: 'wrong' };
  assert.equal((await call('PATCH /api/account', { key, body: wrong })).status, 401);
  const inject = { is_admin: true, credits: 99, id: 1, username: 'root' };
  const refused = await call('PATCH /api/account', { key, body: inject });
  assert.equal(refused.status, 400);
  const same = await call('GET /api/account', { key });
  const { canonical_id, display_name } = same.body;
  assert.deepEqual(same.body, { ...account, api_key: key, ...IN_ORDER, canonical_id, display_name });
  const change = { password: 'another password', current_password: password };
  assert.equal((await call('PATCH /api/account', { key, body: change })).status, 200);
  const closed = await call('DELETE /api/account', { key });
  assert.deepEqual([closed.status, closed.body.id], [200, account.id]);
  assert.equal((await call('GET /api/account', { key })).status, 401);
});

test('access keys over HTTP: created, scoped, paged, revoked', async () => {
  const { api_key: key } = await register();
  const created = [];
  for (const name of ['one', 'two', 'three']) {
    const body = { name, scopes: ['account:read'] };
    const { status, body: made } = await call('POST /api/account/access-keys', { key, body });
    assert.equal(status, 201);
    created.push(made);
    fixture.clock.advance(1);
  }
  const scoped = created[0].api_key;
  assert.equal((await call('GET /api/account', { key: scoped })).body.api_key, null);
  assert.equal((await call('POST /api/account/api-key', { key: scoped })).body.code, 'scope_required');
  const all = await call('GET /api/account/access-keys', { key });
  assert.deepEqual(
    all.body.map((entry: { name: string }) => entry.name),
    ['one', 'two', 'three'],
  );
  assert.equal(JSON.stringify(all.body).includes(created[0].secret_access_key), false);
  const page = await call('GET /api/account/access-keys?limit=2', { key });
  const next = /^<([^>]+)>; rel="next"$/.exec(String(page.headers.link))?.[1];
  const rest = await call(`GET ${next}`, { key });
  assert.deepEqual([...page.body, ...rest.body], all.body);
  assert.equal(rest.headers.link, undefined);
  assert.equal((await call('GET /api/account/access-keys?cursor=x', { key })).body.code, 'invalid_cursor');
  assert.equal((await call(`DELETE /api/account/access-keys/${created[0].id}`, { key })).status, 200);
  assert.equal((await call('GET /api/account', { key: scoped })).status, 401);
  const bad = [
    {},
    { name: '', scopes: ['*'] },
    { name: 'x', scopes: [] },
    { name: 'x', scopes: ['root'] },
    { name: 'x', scopes: '*' },
  ];
  for (const body of bad) {
    assert.equal(
      (await call('POST /api/account/access-keys', { key, body })).status,
      400,
      JSON.stringify(body),
    );
  }
});

test('every admin route: 401 without a key, 403 with a user’s', async () => {
  const { api_key: key } = await register();
  for (const { method, path } of adminRoutes(fixture)) {
    const line = `${method} ${path.replace('{id}', '1')}`;
    const body = method === 'POST' ? { amount: 1, reason: 'x', username: 'x-x', email: 'x@x' } : undefined;
    const nobody = await call(line, { body });
    assert.deepEqual([nobody.status, nobody.body.code], [401, 'missing_api_key'], line);
    const user = await call(line, { key, body });
    assert.deepEqual([user.status, user.body.code], [403, 'admin_required'], line);
  }
});

test('administration over HTTP', async () => {
  const key = await administrator();
  const { id, api_key: user } = await register();
  const path = `/api/admin/accounts/${id}`;
  const granted = await call(`POST ${path}/credits`, { key, body: { amount: 2.5, reason: 'welcome' } });
  assert.deepEqual([granted.status, granted.body.credits], [200, 12.5]);
  const overdrawn = await call(`POST ${path}/credits`, { key, body: { amount: -100, reason: 'x' } });
  assert.deepEqual([overdrawn.status, overdrawn.body.code], [402, 'insufficient_credits']);
  const fine = await call(`POST ${path}/credits`, { key, body: { amount: 1e-7, reason: 'x' } });
  assert.equal(fine.status, 400);
  const suspended = await call(`POST ${path}/suspend`, { key, body: { reason: 'abuse' } });
  assert.deepEqual([suspended.body.is_active, suspended.body.suspended_reason], [false, 'abuse']);
  const refused = await call('GET /api/account', { key: user });
  assert.deepEqual([refused.status, refused.body.code], [403, 'account_suspended']);
  assert.equal((await call(`POST ${path}/resume`, { key })).status, 200);
  assert.equal((await call('GET /api/account', { key: user })).status, 200);
  assert.equal((await call(`POST ${path}/api-key`, { key })).body.api_key, user);
  for (const bad of ['0', '-1', 'x', '999999', '1e3', '99999999999999999999']) {
    assert.equal((await call(`POST /api/admin/accounts/${bad}/resume`, { key })).status, 404, bad);
  }
  const created = await call('POST /api/admin/accounts', {
    key,
    body: { username: 'made-by-admin', email: 'made@example.com', is_admin: true },
  });
  assert.deepEqual([created.status, created.body.is_admin], [201, true]);
  const ids = [];
  let next: string | undefined = '/api/admin/accounts?limit=3';
  while (next !== undefined) {
    const page = await call(`GET ${next}`, { key });
    ids.push(...page.body.map((account: { id: number }) => account.id));
    next = /^<([^>]+)>/.exec(String(page.headers.link ?? ''))?.[1];
  }
  const all = await call('GET /api/admin/accounts', { key });
  assert.deepEqual(
    ids,
    all.body.map((account: { id: number }) => account.id),
  );
});

test('a session shows and changes what opens the account only 15 minutes after the password', async () => {
  const { username, api_key: key } = await register();
  const login = await call('POST /api/login', { body: { username, password } });
  const headers = sessionOf(login);
  const MINUTE = 60_000;
  fixture.clock.advance(15 * MINUTE - 1);
  assert.equal((await call('GET /api/account', { headers })).body.api_key, key);
  fixture.clock.advance(1);
  for (const path of ['account', 'profile']) {
    const shown = await call(`GET /api/${path}`, { headers });
    assert.deepEqual([shown.status, shown.body.api_key], [200, null], path);
  }
  const email = 'taken-over@example.com';
  const guarded = [
    ['DELETE /api/account', undefined],
    ['POST /api/account/api-key', {}],
    ['PATCH /api/account', { email }],
    ['POST /api/account/access-keys', { name: 'outlives it', scopes: ['*'] }],
  ] as const;
  for (const [line, body] of guarded) {
    const refused = await call(line, { headers, body });
    assert.deepEqual([refused.status, refused.body.code], [403, 'password_required'], line);
    assert.match(refused.body.hint, /confirm-password/);
  }
  const confirm = (current_password: string) =>
    call('POST /api/account/confirm-password', { headers, body: { current_password } });
  const wrong = await confirm('not this');
  assert.deepEqual([wrong.status, wrong.body.code], [401, 'invalid_credentials']);
  assert.equal((await call('GET /api/account', { headers })).body.api_key, null);
  const own = { email: `${username}@example.net`, current_password: password };
  assert.equal((await call('PATCH /api/account', { headers, body: own })).body.api_key, key);
  fixture.clock.advance(15 * MINUTE);
  assert.equal((await call('GET /api/account', { headers })).body.api_key, null);
  assert.equal((await confirm(password)).status, 200);
  assert.equal((await call('GET /api/account', { headers })).body.api_key, key);
  const rotated = await call('POST /api/account/api-key', { headers, body: {} });
  assert.equal(rotated.status, 200);
  fixture.clock.advance(15 * MINUTE);
  assert.equal((await call('GET /api/account', { headers })).body.api_key, null);
  const changed = { password: `${password}!`, current_password: password };
  const renewed = await call('PATCH /api/account', { headers, body: changed });
  assert.equal(renewed.body.api_key, rotated.body.api_key);
  assert.equal((await call('DELETE /api/account', { headers })).status, 200);
});

test('an administrator in a session is asked for the password before the key of another is shown', async () => {
  const { id, api_key: key } = await register();
  const username = `admin-${++made}`;
  const fields = { username, email: `${username}@example.com`, password, isAdmin: true };
  await fixture.administration.create(BACKGROUND, fields);
  const login = await call('POST /api/login', { body: { username, password } });
  const headers = sessionOf(login);
  const show = () => call(`POST /api/admin/accounts/${id}/api-key`, { headers });
  assert.equal((await show()).body.api_key, key);
  fixture.clock.advance(15 * 60_000);
  assert.equal((await show()).body.code, 'password_required');
  const body = { username: `${username}-2`, email: 'x2@example.com', is_admin: true };
  assert.equal((await call('POST /api/admin/accounts', { headers, body })).body.code, 'password_required');
});
