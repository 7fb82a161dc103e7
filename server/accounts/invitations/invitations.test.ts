import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Call, OPERATOR } from '../../calls/principal.ts';
import { isAppError } from '../../platform/errors.ts';
import { type AccountFixtureOptions, by, openAccountFixture } from '../../testing/account-fixture.ts';
import type { InvitationBody } from './invitation-schema.ts';

const ADDRESS = '192.0.2.7';
const HOSTS = ['127.0.0.1'];
const PASSWORD = 'correct horse';

const code = (expected: string) => (error: unknown) => isAppError(error) && error.code === expected;

/** An administrator who invites people, and the calls of those invited. */
async function open(options: AccountFixtureOptions = {}) {
  const fixture = await openAccountFixture({ registration: 'invitation', ...options });
  const fields = { username: 'chief', email: 'chief@example.org', password: PASSWORD, isAdmin: true };
  const { api_key } = await fixture.administration.create({ record: () => [] }, fields);
  const chief = await fixture.authenticator.authenticate({ apiKey: api_key ?? '' });
  const call = (): Call => ({ principal: chief, record: () => [] });
  const invite = async (body: InvitationBody = {}) => {
    const made = await fixture.invitations.create(call(), body);
    return { ...made, token: new URL(made.url ?? '').hash.slice('#token='.length) };
  };
  const join = (token: string, username = 'ada', more: object = {}) =>
    fixture.invitations.join(
      { record: () => [] },
      {
        token,
        username,
        email: `${username}@example.org`,
        password: PASSWORD,
        hosts: HOSTS,
        address: ADDRESS,
        ...more,
      },
    );
  return { ...fixture, chief, call, invite, join };
}

test('an invitation makes one account, on its terms, and only its hash is stored', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const { token, ...made } = await cloud.invite({
    label: 'row 3',
    username: 'Ada',
    email: 'ada@example.org',
    credits: 2.5,
    account_expires_at: '2999-01-01 00:00:00',
  });
  assert.deepEqual([made.state, made.uses, made.created_by], ['open', 0, 'chief (account 1)']);
  const stored = JSON.stringify(await cloud.metadata.all('SELECT * FROM invitations'));
  assert.doesNotMatch(stored, new RegExp(token));
  const shown = await cloud.invitations.show({ token, hosts: HOSTS });
  assert.deepEqual([shown.username, shown.email], ['Ada', 'ada@example.org']);
  const account = await cloud.join(token, 'somebody-else');
  assert.deepEqual([account.username, account.credits], ['Ada', 12.5]);
  const row = await cloud.store.account(account.id);
  assert.deepEqual([row?.credits_micro, row?.invitation_id], [12_500_000, made.id]);
  await assert.rejects(cloud.join(token, 'ben'), code('invalid_link'));
  const [listed] = await Array.fromAsync(cloud.invitations.list({ afterId: '', limit: 10 }));
  assert.deepEqual([listed?.state, listed?.uses], ['used', 1]);
  assert.doesNotMatch(JSON.stringify(listed), /token|url/);
});

test('of 20 who use one link at once, one joins; of a link for 7, seven', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  for (const places of [1, 7]) {
    const { token } = await cloud.invite({ max_uses: places });
    const tries = Array.from({ length: 20 }, (_, i) => cloud.join(token, `of-${places}-${i}`));
    const results = await Promise.allSettled(tries);
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    assert.equal(results.length - refused.length, places);
    assert.ok(refused.every(code('invalid_link')));
  }
  const [{ n } = { n: 0 }] = await cloud.metadata.all<{ n: number }>('SELECT count(*) AS n FROM accounts');
  assert.equal(n, 1 + 1 + 7);
});

test('its end, a revocation and another host end a link, all alike; a refusal leaves it good', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const refusal = async (token: string, more: object = {}) => {
    const thrown: unknown = await cloud.join(token, 'ada', more).catch((error: unknown) => error);
    assert.ok(isAppError(thrown, 'invalid_link'), String(thrown));
    return { message: thrown.message, hint: thrown.hint };
  };
  const words = await refusal('nonsense');
  const late = await cloud.invite({ expires_in: 60 });
  cloud.clock.advance(60_000);
  assert.deepEqual(await refusal(late.token), words);
  const revoked = await cloud.invite();
  assert.equal((await cloud.invitations.revoke(cloud.call(), revoked.id)).state, 'revoked');
  assert.deepEqual(await refusal(revoked.token), words);
  await assert.rejects(cloud.invitations.revoke(cloud.call(), 'inv-unknown'), code('invitation_not_found'));
  const good = await cloud.invite();
  assert.deepEqual(await refusal(good.token, { hosts: ['evil.example'] }), words);
  await assert.rejects(
    cloud.invitations.show({ token: good.token, hosts: ['evil.example'] }),
    code('invalid_link'),
  );
  await assert.rejects(cloud.join(good.token, 'chief'), code('username_taken'));
  await assert.rejects(cloud.join(good.token, 'ada', { password: 'short' }), code('invalid_request'));
  await cloud.join(good.token, 'ada', { hosts: ['internal', '127.0.0.1'] });
  const { url } = await cloud.invitations.create(by(OPERATOR), {});
  await cloud.join(new URL(url ?? '').hash.slice('#token='.length), 'ben', { hosts: ['any.example'] });
});

test('a link that is replaced or whose account ends before it is used makes none', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const { id, token } = await cloud.invite({ email: 'ada@exmaple.org' });
  const hash = cloud.passwords.hash.bind(cloud.passwords);
  let url: string | null = null;
  // Joining was begun with the old link.
  const hashing = t.mock.method(cloud.passwords, 'hash', async (...how: Parameters<typeof hash>) => {
    url = (await cloud.invitations.renew(cloud.call(), id, { email: 'ada@example.org' })).url;
    return hash(...how);
  });
  await assert.rejects(cloud.join(token), code('invalid_link'));
  hashing.mock.restore();
  const account = await cloud.join(new URL(url ?? '').hash.slice('#token='.length));
  assert.equal(account.email, 'ada@example.org');

  const at = new Date(cloud.clock.now() + 60_000).toISOString();
  const short = await cloud.invite({ account_expires_at: at });
  cloud.clock.advance(60_000);
  await assert.rejects(cloud.join(short.token, 'ben'), code('invalid_link'));
  const listed = await Array.fromAsync(cloud.invitations.list({ afterId: '', limit: 10 }));
  assert.equal(listed.find((one) => one.id === short.id)?.state, 'expired');
});

test('what is promised is there: the name, the address, the plan, and the time', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  for (const [wrong, field] of [
    [{ username: 'CHIEF' }, 'username'],
    [{ email: 'CHIEF@example.org' }, 'email'],
    [{ plan: 'gold' }, 'plan'],
    [{ account_expires_at: '2001-01-01 00:00:00' }, 'account_expires_at'],
    [{ account_expires_at: 'soon' }, 'account_expires_at'],
    [{ username: 'ada', max_uses: 2 }, 'max_uses'],
  ] as const) {
    const thrown: unknown = await cloud.invite(wrong).catch((error: unknown) => error);
    assert.ok(isAppError(thrown, 'invalid_request'), field);
    assert.deepEqual(
      thrown.fields?.map((one) => one.field),
      [field],
    );
  }
});

test('the name of an open invitation is kept for it, until it ends', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const { token: ofClass } = await cloud.invite({ max_uses: 20 });
  const own = await cloud.invite({ username: 'Twice', email: 'twice@example.org', expires_in: 3600 });
  await assert.rejects(cloud.join(ofClass, 'tWICE'), code('username_taken'));
  assert.equal((await cloud.join(own.token)).username, 'Twice');
  const late = await cloud.invite({ username: 'Late', expires_in: 3600 });
  await assert.rejects(cloud.join(ofClass, 'late'), code('username_taken'));
  cloud.clock.advance(3600_000);
  assert.equal((await cloud.join(ofClass, 'late')).username, 'late');
  await assert.rejects(cloud.join(late.token), code('invalid_link'));
  const revoked = await cloud.invite({ username: 'gone' });
  await cloud.invitations.revoke(cloud.call(), revoked.id);
  assert.equal((await cloud.join(ofClass, 'gone')).username, 'gone');
  const hash = cloud.passwords.hash.bind(cloud.passwords);
  // The name is invited while a registration with it hashes its password.
  const hashing = t.mock.method(cloud.passwords, 'hash', async (...how: Parameters<typeof hash>) => {
    await cloud.invite({ username: 'Between' });
    return hash(...how);
  });
  await assert.rejects(cloud.join(ofClass, 'between'), code('username_taken'));
  hashing.mock.restore();
});

test('nobody is invited twice, by line, also at once; what is over frees its name and address', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const csv = 'username,email\nada,ada@example.org\nben,ben@example.org\n';
  const twice = [1, 2].map(() => cloud.invitations.createMany(cloud.call(), { csv, expires_in: 3600 }));
  const [first, second] = await Promise.allSettled(twice);
  assert.equal(first?.status, 'fulfilled');
  assert.ok(second?.status === 'rejected' && isAppError(second.reason, 'invalid_request'));
  const why = 'is already in an open invitation: renew or revoke that one';
  assert.deepEqual(second.reason.fields, [
    { field: 'csv line 2, username', message: why },
    { field: 'csv line 2, email', message: why },
    { field: 'csv line 3, username', message: why },
    { field: 'csv line 3, email', message: why },
  ]);
  await assert.rejects(cloud.invite({ username: 'ADA' }), code('invalid_request'));
  await assert.rejects(cloud.invite({ email: 'ＢＥＮ@example.org' }), code('invalid_request'));
  const listed = await Array.fromAsync(cloud.invitations.list({ afterId: '', limit: 10 }));
  assert.equal(listed.length, 2);
  cloud.clock.advance(3600_000);
  await cloud.invite({ username: 'ada' });
  const [{ id: old }] = listed as [(typeof listed)[number]];
  await assert.rejects(cloud.invitations.renew(cloud.call(), old, {}), code('invalid_request'));
  await cloud.invitations.createMany(cloud.call(), { csv: 'email\nben@example.org\n' });
});

test('of two expired invitations for one name, renewed at once, one is open', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const expired: string[] = [];
  for (let i = 0; i < 2; i++) {
    expired.push((await cloud.invite({ username: 'ada', expires_in: 3600 })).id);
    cloud.clock.advance(3600_000);
  }
  const renewed = await Promise.allSettled([
    ...expired.map((id) => cloud.invitations.renew(cloud.call(), id, {})),
    cloud.invite({ username: 'Ada' }),
  ]);
  assert.equal(renewed.filter(({ status }) => status === 'fulfilled').length, 1);
});

test('where registration is closed nobody is invited, and no link works', async (t) => {
  const cloud = await open({ registration: 'closed' });
  t.after(() => cloud.close());
  await assert.rejects(cloud.invite(), code('registration_closed'));
  await assert.rejects(cloud.join('any'), code('registration_closed'));
});

test('a table: byte order mark, quotes, CRLF, empty fields and 1,000 rows', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const head = '\uFEFFUsername,E-mail,Label\r\n'.replace('E-mail', 'email');
  const csv = `${head}ada,ada@example.org,"Lovelace, ""Ada"""\r\n\r\n,,somebody\r\n`;
  const { invitations } = await cloud.invitations.createMany(cloud.call(), { csv, credits: 3 });
  assert.deepEqual(
    invitations.map(({ username, email, label, credits }) => [username, email, label, credits]),
    [
      ['ada', 'ada@example.org', 'Lovelace, "Ada"', 3],
      [null, null, 'somebody', 3],
    ],
  );
  const semicolons = 'username;credits\nben;1.5\n';
  const german = await cloud.invitations.createMany(cloud.call(), { csv: semicolons });
  assert.equal(german.invitations[0]?.credits, 1.5);
  const padded = 'username;email;label\r\ncarl;;\r\n;;\r\n ; ;\r\ndora;;\r\n;;\r\n';
  const filled = await cloud.invitations.createMany(cloud.call(), { csv: padded });
  assert.deepEqual(
    filled.invitations.map(({ username }) => username),
    ['carl', 'dora'],
    'spreadsheets save empty rows as separators alone',
  );
  const rows = (count: number) => `username\n${Array.from({ length: count }, (_, i) => `s-${i}\n`).join('')}`;
  cloud.clock.advance(1000);
  const many = await cloud.invitations.createMany(cloud.call(), { csv: rows(1000) });
  assert.equal(new Set(many.invitations.map(({ url }) => url)).size, 1000);
  const listed = await Array.fromAsync(cloud.invitations.list({ afterId: '', limit: 2000 }));
  assert.deepEqual(
    listed.slice(-1000).map(({ username }) => username),
    many.invitations.map(({ username }) => username),
  );
  await assert.rejects(
    cloud.invitations.createMany(cloud.call(), { csv: rows(1001) }),
    code('invalid_request'),
  );
});

test('a table with one wrong row invites nobody, and says which line', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const wrong = async (csv: string) => {
    const tried = cloud.invitations.createMany(cloud.call(), { csv });
    const thrown: unknown = await tried.catch((error: unknown) => error);
    assert.ok(isAppError(thrown, 'invalid_request'), csv);
    return (thrown.fields ?? []).map(({ field, message }) => `${field}: ${message}`).join('\n');
  };
  const good = 'username,email\nada,ada@example.org\n';
  assert.match(await wrong(`${good}b c,bc@example.org\n`), /^csv line 3, username: must be 3 to 64/);
  assert.match(await wrong(`${good}ben,ben\n`), /^csv line 3, email: must be an e-mail/);
  assert.match(
    await wrong(`${good}ADA,x@example.org\nben,ADA@example.org\n`),
    /^csv line 3, username: is also on line 2\ncsv line 4, email: is also on line 2$/,
  );
  assert.match(await wrong(`${good}chief,x@example.org\n`), /^csv line 3, username: is taken$/);
  assert.match(await wrong(`${good}Cloudlet,x@example.org\n`), /^csv line 3, username: is taken$/);
  assert.match(await wrong('username,plan\nada,gold\n'), /^csv line 2, plan: is unknown: gold$/);
  for (const credits of ['lots', '0x10', '1e3', '-1', '+1', '.5', 'Infinity', '1 000'])
    assert.match(await wrong(`username,credits\nada,${credits}\n`), /^csv line 2, credits: must be a number/);
  assert.match(await wrong('username;spend_cap\nada;1,5\n'), /^csv line 2, spend_cap: must be a number/);
  assert.match(await wrong('username,account_expires_at\nada,soon\n'), /^csv line 2, account_expires_at: /);
  assert.match(await wrong('username,password\nada,secret\n'), /^csv line 1, password: is not a column/);
  assert.match(await wrong(`${good}ben\n`), /^csv: cannot be read: .* line 3/);
  assert.match(await wrong(`${good}"ben`), /^csv: cannot be read: .*[Qq]uote/);
  assert.match(await wrong('username\n'), /no rows/);
  assert.match(await wrong('username,label\n,\n'), /no rows/);
  const latin1 = Buffer.from('username,label\nada,Ada\nmueller,Müller\n', 'latin1').toString();
  assert.match(
    await wrong(latin1),
    /^csv line 3: has characters that are not UTF-8; save the table as "CSV UTF-8"/,
  );
  const utf16 = Buffer.from('\uFEFFusername\tlabel\nada\tAda\n', 'utf16le').toString();
  assert.match(await wrong(utf16), /^csv line 1: has characters that are not UTF-8/);
  assert.match(await wrong(''), /no rows/);
  const [{ n } = { n: -1 }] = await cloud.metadata.all<{ n: number }>(
    'SELECT count(*) AS n FROM invitations',
  );
  assert.equal(n, 0);
});

test('an account whose end has come is suspended with the reason, and a resumed one goes on', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const at = new Date(cloud.clock.now() + 3600_000).toISOString();
  const { token } = await cloud.invite({ account_expires_at: at });
  const { id, api_key } = await cloud.join(token);
  const enter = () => cloud.authenticator.authenticate({ apiKey: api_key ?? '' });
  cloud.clock.advance(3599_000);
  await cloud.administration.expire();
  await enter();
  cloud.clock.advance(1000);
  await cloud.administration.expire();
  await assert.rejects(
    async () => enter(),
    (error) => code('account_suspended')(error) && /expired/.test(String(error)),
  );
  assert.deepEqual(cloud.changed, [id]);
  const resumed = await cloud.administration.resume(cloud.call(), id);
  assert.deepEqual([resumed.is_active, resumed.expires_at], [true, null]);
  await cloud.administration.expire();
  await enter();
});

test('a link is replaced with what was wrong in it, until all its accounts are there', async (t) => {
  const cloud = await open();
  t.after(() => cloud.close());
  const tokenIn = (url: string | null) => new URL(url ?? '').hash.slice('#token='.length);
  const renew = (id: string, body = {}) => cloud.invitations.renew(cloud.call(), id, body);
  const first = await cloud.invite({ username: 'Ada', email: 'ada@exmaple.org', plan: 'free', credits: 2 });
  cloud.clock.advance(8 * 24 * 3600_000);
  await assert.rejects(cloud.join(first.token), code('invalid_link'), 'it has expired');
  const second = await renew(first.id, { email: 'ada@example.org', expires_in: 3600 });
  assert.deepEqual(
    [second.id, second.state, second.username, second.email, second.credits, second.mailed],
    [first.id, 'open', 'Ada', 'ada@example.org', 2, false],
  );
  const [third, fourth] = [await renew(first.id), await renew(first.id, { label: 'row 3' })];
  for (const dead of [first.token, tokenIn(second.url), tokenIn(third.url)])
    await assert.rejects(cloud.join(dead), code('invalid_link'));
  assert.deepEqual([fourth.label, fourth.email], ['row 3', 'ada@example.org']);
  const account = await cloud.join(tokenIn(fourth.url));
  assert.deepEqual([account.username, account.email, account.credits], ['Ada', 'ada@example.org', 12]);
  await assert.rejects(renew(first.id), code('write_conflict'));

  const ofClass = await cloud.invite({ max_uses: 2 });
  await cloud.join(ofClass.token, 'ben');
  const next = await renew(ofClass.id);
  assert.deepEqual([next.uses, next.max_uses], [1, 2]);
  await assert.rejects(cloud.join(ofClass.token, 'carl'), code('invalid_link'));
  await assert.rejects(renew(ofClass.id, { email: 'x@example.org' }), code('invalid_request'));
  await assert.rejects(renew(ofClass.id, { mail: true }), code('mail_not_set'));
  await cloud.join(tokenIn(next.url), 'carl');
  const other = await cloud.invite({ email: 'dora@example.org' });
  await assert.rejects(renew(other.id, { email: 'ada@example.org' }), code('invalid_request'), 'it is taken');
  await cloud.invitations.revoke(cloud.call(), other.id);
  await assert.rejects(renew(other.id), code('write_conflict'));
  await assert.rejects(renew('inv-00000000000000000000000000'), code('invitation_not_found'));
});
