import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BACKGROUND } from '../../metadata/change.ts';
import { isAppError } from '../../platform/errors.ts';
import { type AccountFixture, by, openAccountFixture, shown } from '../../testing/account-fixture.ts';

let fixture: AccountFixture;
before(async () => {
  fixture = await openAccountFixture();
});
after(() => fixture.close());

const DAY = 24 * 3600_000;
const password = 'a good password';
const code = (expected: string) => (error: unknown) => isAppError(error) && error.code === expected;
let made = 0;

async function register() {
  const username = `User-${++made}`;
  const account = await fixture.accounts.register(BACKGROUND, {
    username,
    email: `${username}@Example.com`,
    password,
  });
  return { ...account, key: account.api_key ?? '' };
}

const login = (name: string, given = password, address = '10.0.0.1') =>
  fixture.sessions.login(BACKGROUND, { name, password: given, address });
const countOf = async (id: number) => (await fixture.sessionStore.sessionsAfter(id, '', 1000)).length;
const bySession = async (session: Parameters<typeof shown>[0]) =>
  fixture.authenticator.authenticate(shown(session));

test('login by name or e-mail in any case; last_login is set; every login has a new token', async () => {
  const { username, id, key } = await register();
  fixture.clock.advance(5000);
  const first = await login(username.toUpperCase());
  const second = await login(`${username}@EXAMPLE.COM`);
  assert.notEqual(first.token, second.token);
  assert.match(first.token, /^[A-Za-z0-9_-]{43}$/);
  assert.equal(first.account.last_login, '2026-01-01 00:00:05');
  assert.equal(first.account.api_key, key);
  const principal = await bySession(first);
  assert.deepEqual([principal.accountId, principal.via], [id, 'session']);
  assert.equal((await fixture.accounts.profile(principal)).last_login, '2026-01-01 00:00:05');
  const stored = await fixture.metadata.all('SELECT * FROM sessions WHERE token_hash = ?', first.token);
  assert.equal(stored.length, 0);
});

test('unknown name and wrong password: same error, same work', async () => {
  const { username } = await register();
  const attempts: [string, string][] = [
    [username, 'wrong password'],
    ['nobody-here', password],
    ['nobody@here.example', password],
    ['', ''],
    ['x'.repeat(256), 'y'.repeat(1024)],
    ['\ud800@\0', password],
  ];
  const seen = new Set<string>();
  for (const [name, given] of attempts) {
    const computed = fixture.passwords.computed;
    await assert.rejects(login(name, given), (error: Error) => {
      seen.add(JSON.stringify({ ...error, message: error.message, stack: '' }));
      return code('invalid_credentials')(error);
    });
    assert.equal(fixture.passwords.computed - computed, 1, name);
  }
  assert.equal(seen.size, 1);
});

test('failures slow one network, never another; parallel guesses cannot outrun the count', async () => {
  const { username } = await register();
  const computed = fixture.passwords.computed;
  const guesses = await Promise.allSettled(
    Array.from({ length: 60 }, () => login(username, 'wrong password')),
  );
  const codes = guesses.map((guess) => (guess.status === 'rejected' ? guess.reason.code : 'in'));
  assert.ok(codes.includes('rate_limited'));
  assert.ok(fixture.passwords.computed - computed <= 12, `${fixture.passwords.computed - computed} hashes`);
  await assert.rejects(login(username), code('rate_limited'));
  await login(username, password, '10.0.1.1');
  await assert.rejects(login(username), code('rate_limited'));
  fixture.clock.advance(60_000);
  await login(username);
  for (let i = 0; i < 9; i++)
    await assert.rejects(login(username, 'wrong password'), code('invalid_credentials'));
  await login(username);
});

test('a name nobody has is slowed like one that exists', async () => {
  for (let i = 0; i < 10; i++)
    await assert.rejects(login('ghost', password, '10.7.0.1'), code('invalid_credentials'));
  await assert.rejects(login('GHOST', password, '10.7.0.1'), code('rate_limited'));
});

test('guesses by name and by e-mail address count together', async () => {
  const { username } = await register();
  const names = [username, `${username}@example.com`];
  const failTimes = async (count: number, address: string) => {
    for (let i = 0; i < count; i++) {
      const guess = login(names[i % 2] ?? '', 'wrong password', address);
      await assert.rejects(guess, code('invalid_credentials'));
    }
  };
  await failTimes(9, '10.8.0.1');
  await login(username, password, '10.8.0.1');
  await failTimes(10, '10.8.0.1');
  for (const name of names) {
    await assert.rejects(login(name, password, '10.8.0.1'), code('invalid_credentials'), name);
    await login(name, password, '10.8.1.1');
  }
  // The refused attempts have not made the delay longer.
  fixture.clock.advance(1000);
  await login(username, password, '10.8.0.1');
});

test('whose e-mail address it is shows in no answer to guesses', async () => {
  const { username } = await register();
  await register();
  const answersTo = async (names: string[], address: string) => {
    const seen: string[] = [];
    for (let i = 0; i < 40; i++) {
      if (i % 13 === 12) fixture.clock.advance(1500);
      await login(names[i < 12 ? 0 : i % 2] ?? '', 'wrong password', address).catch((error) =>
        seen.push(`${error.code} ${error.message} ${error.retryAfterSeconds} ${error.hint}`),
      );
    }
    return seen;
  };
  const own = await answersTo([username, `${username}@example.com`], '10.9.0.1');
  assert.deepEqual(await answersTo([username, `User-${made}@example.com`], '10.9.1.1'), own);
  assert.deepEqual(await answersTo([username, 'nobody@example.com'], '10.9.2.1'), own);
  assert.deepEqual(await answersTo(['nobody', 'nobody@example.org'], '10.9.3.1'), own);
  assert.ok(own.some((answer) => answer.startsWith('rate_limited')));
});

test('30 parallel right logins all succeed', async () => {
  const { username } = await register();
  await Promise.all(Array.from({ length: 30 }, () => login(username)));
});

test('idle 7 days or 30 days in all end a session', async () => {
  const { username } = await register();
  const idle = await login(username);
  await bySession(idle);
  fixture.clock.advance(7 * DAY - 1);
  await bySession(idle);
  fixture.clock.advance(7 * DAY);
  await assert.rejects(bySession(idle), code('invalid_session'));
  const used = await login(username);
  for (let day = 0; day < 29; day++) {
    fixture.clock.advance(DAY);
    await bySession(used);
  }
  fixture.clock.advance(DAY - 1);
  await bySession(used);
  fixture.clock.advance(1);
  await assert.rejects(bySession(used), code('invalid_session'));
});

test('last use outlives the cache once flushed, and sweep removes what is over', async () => {
  const { username, id } = await register();
  const session = await login(username);
  fixture.clock.advance(6 * DAY);
  await bySession(session);
  await fixture.authenticator.flush();
  fixture.bus.forgets({ kind: 'account', id });
  fixture.clock.advance(6 * DAY);
  await bySession(session);
  await fixture.sessions.sweep();
  assert.equal(await countOf(id), 1, 'swept although it lives');
  fixture.bus.forgets({ kind: 'account', id });
  fixture.clock.advance(30 * DAY);
  await fixture.sessions.sweep();
  assert.equal(await countOf(id), 0);
});

test('logout ends that session only; again, or with nonsense, is no error', async () => {
  const { id, username } = await register();
  const [one, two] = [await login(username), await login(username)];
  await bySession(one);
  assert.deepEqual(await fixture.sessions.logout(BACKGROUND, one.token), { account_id: id });
  await assert.rejects(bySession(one), code('invalid_session'));
  await bySession(two);
  assert.deepEqual(await fixture.sessions.logout(BACKGROUND, one.token), {});
  await fixture.sessions.logout(BACKGROUND, undefined);
});

test('a new password ends the other sessions and the old password', async () => {
  const { username, key } = await register();
  const [own, other] = [await login(username), await login(username)];
  await bySession(other);
  const change = { password: 'another password', currentPassword: password, address: '10.0.0.1' };
  await fixture.accounts.update(by(await bySession(own)), change);
  await bySession(own);
  await assert.rejects(bySession(other), code('invalid_session'));
  await assert.rejects(login(username), code('invalid_credentials'));
  await login(username, 'another password');
  assert.equal((await fixture.authenticator.authenticate({ apiKey: key })).via, 'key');
});

test('beyond 100 sessions the oldest ends', async () => {
  const { username, id } = await register();
  const first = await login(username);
  await bySession(first);
  for (let i = 0; i < 100; i++) {
    fixture.clock.advance(1);
    await login(username);
  }
  assert.equal(await countOf(id), 100);
  await assert.rejects(bySession(first), code('invalid_session'));
});

test('a session needs both its secrets, and neither of another', async () => {
  const [victim, attacker] = [
    await login((await register()).username),
    await login((await register()).username),
  ];
  const authenticate = async (cookies: readonly string[], token: string | undefined) =>
    fixture.authenticator.authenticate({ session: { cookies, token } });
  for (const round of ['first seen', 'remembered']) {
    const refused: [readonly string[], string | undefined, string][] = [
      [[victim.cookie], undefined, 'incomplete_session'],
      [[], victim.token, 'incomplete_session'],
      [[attacker.cookie], victim.token, 'incomplete_session'],
      [[victim.cookie], attacker.token, 'incomplete_session'],
      [[victim.token], victim.cookie, 'invalid_session'],
      [[victim.cookie], victim.cookie, 'invalid_session'],
      [[victim.cookie], '', 'invalid_session'],
    ];
    for (const [cookies, token, expected] of refused)
      await assert.rejects(authenticate(cookies, token), code(expected), `${round}: ${expected}`);
    const own = (await bySession(victim)).accountId;
    // A second cookie, planted by another program, neither hides the session nor opens one.
    assert.equal((await authenticate([attacker.cookie, victim.cookie], victim.token)).accountId, own);
    await bySession(attacker);
  }
  await fixture.sessions.logout(BACKGROUND, victim.cookie);
  await bySession(victim);
});

test('a key is no session token and a token is no key', async () => {
  const { username, key } = await register();
  const session = await login(username);
  await bySession(session);
  await fixture.authenticator.authenticate({ apiKey: key });
  await assert.rejects(bySession({ cookie: session.cookie, token: key }), code('invalid_session'));
  await assert.rejects(
    async () => fixture.authenticator.authenticate({ apiKey: session.token }),
    code('invalid_api_key'),
  );
});

test('sessions are listed with what tells them apart, until they end', async () => {
  const { username, id } = await register();
  const agents = ['Firefox', 'curl', 'x'.repeat(1000)];
  const sessions: Parameters<typeof shown>[0][] = [];
  for (const userAgent of agents) {
    fixture.clock.advance(1000);
    const from = { name: username, password, address: '10.9.0.1', userAgent };
    sessions.push(await fixture.sessions.login(BACKGROUND, from));
  }
  const [, second = { cookie: '', token: '' }] = sessions;
  const principal = await bySession(second);
  const listed = async () =>
    await Array.fromAsync(fixture.sessions.list(principal, { afterId: '', limit: 100 }));
  const all = await listed();
  assert.deepEqual(
    all.map(({ user_agent, is_current }) => [user_agent.length, is_current]),
    [
      [7, false],
      [4, true],
      [400, false],
    ],
  );
  assert.deepEqual([all[0]?.user_agent, all[0]?.address], ['Firefox', '10.9.0.1']);
  const [first] = await Array.fromAsync(
    fixture.sessions.list(principal, { afterId: all[0]?.id ?? '', limit: 1 }),
  );
  assert.equal(first?.id, all[1]?.id);
  fixture.clock.advance(6 * DAY);
  await bySession(second);
  await fixture.authenticator.flush();
  fixture.clock.advance(2 * DAY);
  const left = await listed();
  assert.deepEqual(
    left.map(({ user_agent }) => user_agent),
    ['curl'],
    'a session that ended by itself is listed',
  );
  assert.equal(await countOf(id), 3);
});
