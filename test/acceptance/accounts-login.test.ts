/** Contract §3: logging in and out, and the throttling of guesses. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { type SessionHeaders, sessionOf } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { freePort } from '../harness/free-port.ts';

const PASSWORD = 'correct horse battery';
const cloud = await CloudProcess.start();
after(() => cloud.stop());
const client = await CheckedClient.open(cloud.api);
const admin = client.as(ADMIN_KEY);

const login = (json: unknown) => client.call('/api/login', { json });

/** Logs in and returns the headers of a page of that session. */
async function pageOf(username: string, password = PASSWORD): Promise<SessionHeaders> {
  const answer = await login({ username, password });
  assert.equal(answer.status, 200);
  return sessionOf(answer);
}

/** Cookie and token alone, which do not identify the page. */
const secretsOf = ({ cookie, 'cloudlet-session': token }: SessionHeaders) => ({
  cookie,
  'cloudlet-session': token,
});

describe('logging in', () => {
  test('by user name or e-mail address, in any case, gives the account and its key', async () => {
    const { id, username, api_key } = await client.register();
    const email = `${username}@example.org`;
    const names = [{ username }, { username: username.toUpperCase() }, { username: email }, { email }];
    for (const name of [...names, { email: email.toUpperCase() }]) {
      const { status, body } = await login({ ...name, password: PASSWORD });
      assert.equal(status, 200, JSON.stringify(name));
      assert.deepEqual([body.id, body.username, body.api_key], [id, username, api_key]);
      assert.match(body.last_login, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
    }
    assert.notEqual((await client.as(api_key).expect(200, '/api/account')).last_login, null);
  });

  test('is refused to pages of other sites, and to nobody else', async () => {
    const { username } = await client.register();
    const json = { username, password: PASSWORD };
    const from = (headers: Record<string, string>) => client.call('/api/login', { json, headers });
    const foreign = [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
    ];
    for (const headers of foreign) {
      const { status, body, headers: sent } = await from(headers);
      assert.deepEqual([status, body.code, sent.get('set-cookie')], [403, 'cross_site_request', null]);
    }
    const own = { origin: cloud.api, 'sec-fetch-site': 'same-origin' };
    for (const headers of [{}, own, { origin: cloud.api }]) assert.equal((await from(headers)).status, 200);
  });

  test('sets a cookie that scripts and other sites cannot use', async () => {
    const { username } = await client.register();
    const { headers } = await login({ username, password: PASSWORD });
    const [pair = '', ...flags] = (headers.get('set-cookie') ?? '').split('; ');
    assert.match(pair, /^cloudlet_session=[A-Za-z0-9_-]{43}$/);
    assert.deepEqual(
      flags.map((flag) => flag.replace(/\d+$/, 'N')),
      ['Path=/', 'Max-Age=N', 'HttpOnly', 'SameSite=Lax'],
    );
    assert.equal(headers.get('cache-control'), 'no-store');
  });

  test('by session the account is whole: its key is shown, and changes are possible', async () => {
    const { username, api_key } = await client.register();
    const headers = await pageOf(username);
    assert.equal((await client.expect(200, '/api/account', { headers })).api_key, api_key);
    const json = { name: 'by-session' };
    await client.expect(201, '/api/buckets', { headers, json });
  });

  test('neither secret of a session opens anything alone, or with that of another', async () => {
    const [victim, attacker] = [await client.register(), await client.register()];
    const [own, other] = [await pageOf(victim.username), await pageOf(attacker.username)];
    const token = own['cloudlet-session'];
    const page = { 'sec-fetch-site': 'same-origin' };
    const halves = [
      // The headers that a program on another port of the host gets from its visitor.
      { cookie: own.cookie },
      { cookie: own.cookie, 'cloudlet-session': other['cloudlet-session'] },
      // The headers of the page after that program has set its own cookie.
      { cookie: other.cookie, 'cloudlet-session': token },
      { 'cloudlet-session': token },
    ];
    const calls = [
      ['/api/account', {}],
      ['/api/account/sessions', { method: 'DELETE' }],
      ['/api/account/tickets', { json: { path: '/api/updates' } }],
      ['/api/buckets', { json: { name: 'half-a-session' } }],
    ] as const;
    for (const half of halves) {
      for (const [path, call] of calls)
        await client.refused(401, 'incomplete_session', [path, { ...call, headers: { ...page, ...half } }]);
    }
    // A cookie set beside that of the session, for a longer path, hides nothing.
    const beside = `${other.cookie}; cloudlet_session=${'A'.repeat(43)}; ${own.cookie}`;
    const headers = { ...page, cookie: beside, 'cloudlet-session': token };
    assert.equal((await client.expect(200, '/api/account', { headers })).username, victim.username);
    // Nor does the cookie alone end the session.
    await client.expect(200, '/api/logout', { method: 'POST', headers: { ...page, cookie: own.cookie } });
    await client.expect(200, '/api/account', { headers: own });
  });

  test('behind https the cookie is Secure and bound to the host', async () => {
    const port = String(await freePort());
    const env = { CLOUDLET_PUBLIC_URL: 'https://cloud.example.org', CLOUDLET_PORT: port };
    const other = await CloudProcess.start({ env });
    try {
      const user = await CheckedClient.open(`http://127.0.0.1:${port}`);
      const { username } = await user.register();
      const { headers } = await user.call('/api/login', { json: { username, password: PASSWORD } });
      assert.match(headers.get('set-cookie') ?? '', /^__Host-cloudlet_session=.*; Secure$/);
      // Its published ports are at another address.
      assert.match(headers.get('strict-transport-security') ?? '', /max-age=\d{8}/);
    } finally {
      await other.stop();
    }
  });
});

describe('an unknown user and a wrong password', () => {
  test('cannot be told apart', async () => {
    const { username } = await client.register();
    const wrong = await login({ username, password: 'wrong password' });
    const unknown = await login({ username: 'nobody-of-that-name', password: 'wrong password' });
    const mail = await login({ email: 'nobody@example.org', password: 'wrong password' });
    for (const { status, body, headers } of [wrong, unknown, mail]) {
      assert.equal(status, 401);
      assert.deepEqual({ ...body, request_id: '' }, { ...wrong.body, request_id: '' });
      assert.equal(headers.get('set-cookie'), null);
      assert.equal(body.code, 'invalid_credentials');
    }
  });

  test('wrong types and missing fields are said', async () => {
    for (const json of [{}, { username: 'x' }, { password: PASSWORD }, { username: 5, password: PASSWORD }])
      await client.refused(400, 'invalid_request', ['/api/login', { json }]);
  });

  test('an account without a password cannot be logged in to', async () => {
    const json = { username: 'keys-only', email: 'keys-only@example.org' };
    await admin.expect(201, '/api/admin/accounts', { json });
    for (const password of ['', 'undefined', 'null'])
      await client.refused(401, 'invalid_credentials', [
        '/api/login',
        { json: { username: 'keys-only', password } },
      ]);
  });
});

describe('logging out', () => {
  test('ends the session and clears the cookie', async () => {
    const { username } = await client.register();
    const [session, other] = [await pageOf(username), await pageOf(username)];
    const call = { method: 'POST', headers: session };
    const { status, body, headers } = await client.call('/api/logout', call);
    assert.equal(status, 200);
    assert.deepEqual(body, {});
    assert.match(headers.get('set-cookie') ?? '', /^cloudlet_session=; Path=\/; Max-Age=0/);
    await client.refused(401, 'invalid_session', ['/api/account', { headers: session }]);
    await client.expect(200, '/api/account', { headers: other });
    assert.equal((await client.call('/api/logout', call)).status, 200);
    assert.equal((await client.call('/api/logout', { method: 'POST' })).status, 200);
  });

  test('sessions survive a restart', async () => {
    const own = await CloudProcess.start();
    try {
      const first = await CheckedClient.open(own.api);
      const { username } = await first.register();
      const headers = sessionOf(await first.call('/api/login', { json: { username, password: PASSWORD } }));
      await own.crash();
      await own.start();
      const second = await CheckedClient.open(own.api);
      assert.equal((await second.expect(200, '/api/account', { headers })).username, username);
    } finally {
      await own.stop();
    }
  });
});

describe('a session with a change', () => {
  test('is refused when another site sends it, and when nothing says who does', async () => {
    const { username } = await client.register();
    const secrets = secretsOf(await pageOf(username));
    const json = { name: 'cross-site' };
    const foreign = [
      {},
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
    ];
    for (const headers of foreign)
      await client.refused(403, 'cross_site_request', [
        '/api/buckets',
        { headers: { ...secrets, ...headers }, json },
      ]);
    await client.refused(403, 'cross_site_request', [
      '/api/account',
      { method: 'DELETE', headers: { ...secrets, 'sec-fetch-site': 'cross-site' } },
    ]);
    const own = { origin: cloud.api, 'sec-fetch-site': 'same-origin' };
    await client.expect(201, '/api/buckets', { headers: { ...secrets, ...own }, json });
    await client.expect(200, '/api/account', { headers: secrets });
  });
});

describe('ten failures of one account', () => {
  test('slow its logins, and hurt neither its key nor any other account', async () => {
    const victim = await client.register();
    const other = await client.register();
    const wrong = { username: victim.username, password: 'wrong password' };
    for (let i = 0; i < 10; i++) assert.equal((await login(wrong)).status, 401, `failure ${i + 1}`);
    const slowed = await login({ username: victim.username.toUpperCase(), password: PASSWORD });
    assert.equal(slowed.status, 429);
    assert.equal(slowed.body.code, 'rate_limited');
    assert.ok(Number(slowed.headers.get('retry-after')) >= 1);
    assert.equal((await client.as(victim.api_key).call('/api/account')).status, 200);
    assert.equal((await login({ username: other.username, password: PASSWORD })).status, 200);
  });

  test('are forgiven by waiting as long as Retry-After says', async () => {
    const { username } = await client.register();
    for (let i = 0; i < 10; i++) await login({ username, password: 'wrong password' });
    for (;;) {
      const { status, headers } = await login({ username, password: PASSWORD });
      if (status === 200) break;
      assert.equal(status, 429);
      const seconds = Number(headers.get('retry-after'));
      assert.ok(seconds >= 1 && seconds <= 2, `${seconds}`);
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    }
    assert.equal((await login({ username, password: 'wrong password' })).status, 401);
  });
});

describe('sessions', () => {
  const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
  /** A new account with `count` sessions, and the path of each session. */
  async function signedIn(count: number) {
    const { username, api_key } = await client.register();
    const pages: SessionHeaders[] = [];
    const login = { json: { username, password: PASSWORD }, headers: { 'user-agent': FIREFOX } };
    for (let i = 0; i < count; i++) {
      pages.push(sessionOf(await client.call('/api/login', login)));
    }
    const key = client.as(api_key);
    const paths = (await key.expect(200, SESSIONS)).map(({ id }: { id: string }) => `${SESSIONS}/${id}`);
    return { key, pages, paths };
  }
  const SESSIONS = '/api/account/sessions';
  const DELETE = { method: 'DELETE' };
  const isIn = async (headers: SessionHeaders | undefined) =>
    headers !== undefined && (await client.call('/api/account', { headers })).status === 200;

  test('are listed with browser and times, and the one that asks is marked', async () => {
    const { key, pages } = await signedIn(2);
    const seen = await client.expect(200, SESSIONS, { headers: pages[1] ?? {} });
    assert.deepEqual(
      seen.map((session: { is_current: boolean }) => session.is_current),
      [false, true],
    );
    assert.match(seen[0].id, /^ses-/);
    assert.deepEqual([seen[0].user_agent, seen[0].address], [FIREFOX, '127.0.0.1']);
    const text = JSON.stringify(seen);
    for (const { cookie, 'cloudlet-session': token } of pages)
      for (const secret of [cookie.split('=')[1] ?? '', token])
        assert.ok(!text.includes(secret), 'shows a secret');
    const byKey = await key.expect(200, `${SESSIONS}?limit=1`);
    assert.deepEqual([byKey.length, byKey[0].is_current], [1, false]);
  });

  test('end one by one, at once', async () => {
    const { key, pages, paths } = await signedIn(2);
    assert.ok(await isIn(pages[0]));
    await client.expect(200, paths[0], { ...DELETE, headers: pages[1] ?? {} });
    assert.deepEqual([await isIn(pages[0]), await isIn(pages[1])], [false, true]);
    await key.refused(404, 'session_not_found', [paths[0], DELETE]);
    await key.expect(200, paths[1], DELETE);
    assert.ok(!(await isIn(pages[1])), 'a key ends them too');
  });

  test('all others end, and the one that asks goes on', async () => {
    const { key, pages } = await signedIn(3);
    for (const page of pages) assert.ok(await isIn(page));
    const { ended } = await client.expect(200, SESSIONS, { ...DELETE, headers: pages[1] ?? {} });
    assert.equal(ended, 2);
    assert.deepEqual(await Promise.all(pages.map(isIn)), [false, true, false]);
    assert.deepEqual(await key.expect(200, SESSIONS, DELETE), { ended: 1 });
    assert.ok(!(await isIn(pages[1])));
  });

  test('are nobody else’s, and no limited key ends them', async () => {
    const { key, pages, paths } = await signedIn(1);
    const other = await signedIn(0);
    await other.key.refused(404, 'session_not_found', [paths[0], DELETE]);
    assert.deepEqual(await other.key.expect(200, SESSIONS, DELETE), { ended: 0 });
    const json = { name: 'k', scopes: ['account:*'] };
    const limited = client.as((await key.expect(201, '/api/account/access-keys', { json })).api_key);
    await limited.refused(403, 'scope_required', [paths[0], DELETE]);
    await limited.refused(403, 'scope_required', [SESSIONS, DELETE]);
    assert.ok(await isIn(pages[0]));
  });
});
