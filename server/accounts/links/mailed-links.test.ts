import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MailServer } from '../../../test/harness/mail-server.ts';
import type { Call, Principal } from '../../calls/principal.ts';
import { BACKGROUND } from '../../metadata/change.ts';
import { type ErrorCode, isAppError } from '../../platform/errors.ts';
import { type AccountFixture, by, newPrincipal, openAccountFixture } from '../../testing/account-fixture.ts';

const ADDRESS = '192.0.2.7';
const HOSTS = ['127.0.0.1'];
const HOUR_MS = 3_600_000;

let server: MailServer;
let cloud: AccountFixture;
before(async () => {
  server = await new MailServer().open();
  cloud = await openAccountFixture({ smtpUrl: server.url, closedAccountDays: 7 });
  cloud.mail.queue.start();
});
after(async () => {
  await cloud.mail.queue.close();
  await cloud.close();
  await server.close();
});
beforeEach(async () => {
  await cloud.mail.queue.whenIdle();
  server.received.length = 0;
});

const code = (wanted: ErrorCode) => (error: unknown) => isAppError(error, wanted);
/** The token of the link in the newest mail to this address. */
async function tokenFor(email: string): Promise<string> {
  await cloud.mail.queue.whenIdle();
  const mail = server.received.findLast(({ to }) => to.includes(email));
  return /#token=([\w-]+)/.exec(mail?.text ?? '')?.[1] ?? '';
}
const confirm = (token: string, hosts: readonly string[] = HOSTS) =>
  cloud.mailedLinks.confirm(BACKGROUND, { token, hosts });
const login = (name: string, password = 'correct horse') =>
  cloud.sessions.login(BACKGROUND, { name, password, address: ADDRESS });
async function confirmed(name: string): Promise<Principal> {
  const one = await newPrincipal(cloud.accounts, name);
  await confirm(await tokenFor(`${name}@example.org`));
  return one;
}
async function reset(email: string): Promise<string> {
  await cloud.mailedLinks.requestReset(BACKGROUND, email);
  return await tokenFor(email);
}
const use = (token: string, hosts = HOSTS) =>
  cloud.resetLinks.use(BACKGROUND, { token, password: 'another horse', address: ADDRESS, hosts });
const administrator = async (name: string): Promise<Call> => {
  const { id } = await cloud.accounts.create(
    BACKGROUND,
    { username: name, email: `${name}@example.org`, password: 'a long correct horse' },
    { isAdmin: true },
  );
  const principal = await newPrincipal(cloud.accounts, `${name}-keys`);
  return by({ ...principal, accountId: id, username: name, isAdmin: true });
};

test('an address is confirmed by the link that went there, once and at the host of the link', async () => {
  const ada = await newPrincipal(cloud.accounts, 'ada');
  assert.equal((await cloud.accounts.profile(ada)).email_confirmed, false);
  const token = await tokenFor('ada@example.org');
  await assert.rejects(confirm(token, ['evil.example']), code('invalid_link'));
  const own = { account_id: ada.accountId, username: 'ada', email: 'ada@example.org' };
  assert.deepEqual(await confirm(token), own);
  assert.equal((await cloud.accounts.profile(ada)).email_confirmed, true);
  await assert.rejects(confirm(token), code('invalid_link'));
  const change = { email: 'ada2@example.org', currentPassword: 'correct horse', address: ADDRESS };
  const changed = await cloud.accounts.update(by(ada), change);
  assert.equal(changed.email_confirmed, false);
  const [later, earlier] = [await tokenFor('ada2@example.org'), token];
  await cloud.accounts.update(by(ada), { ...change, email: 'ada3@example.org' });
  for (const old of [later, earlier]) await assert.rejects(confirm(old), code('invalid_link'));
});

test('a forgotten password is set by mail: sessions end, keys stay, and the link works once', async () => {
  const ben = await confirmed('ben');
  await login('ben');
  await cloud.mailedLinks.requestReset(BACKGROUND, 'BEN@example.org');
  const token = await tokenFor('ben@example.org');
  await assert.rejects(use(token, ['evil.example']), code('invalid_link'));
  const done = await use(token);
  assert.deepEqual([done.username, done.sessions_ended, done.keys_kept > 0], ['ben', 1, true]);
  await assert.rejects(use(token), code('invalid_link'));
  await assert.rejects(login('ben'), code('invalid_credentials'));
  assert.equal((await login('ben', 'another horse')).account.id, ben.accountId);
  const mail = server.received.findLast(({ to }) => to.includes('ben@example.org'));
  assert.match(mail?.text ?? '', /API keys keep working/);
});

test('two browsers with one link at once set one password', async () => {
  await confirmed('bert');
  const token = await reset('bert@example.org');
  const all = await Promise.allSettled([use(token), use(token), use(token)]);
  assert.equal(all.filter(({ status }) => status === 'fulfilled').length, 1);
});

test('nothing goes to an address that is not confirmed, of nobody, or of a suspended account', async () => {
  await newPrincipal(cloud.accounts, 'carl');
  const dora = await confirmed('dora');
  const chief = await administrator('chief');
  await cloud.administration.suspend(chief, { accountId: dora.accountId, reason: 'test' });
  await cloud.mail.queue.whenIdle();
  server.received.length = 0;
  for (const name of ['carl', 'dora', 'nobody']) assert.equal(await reset(`${name}@example.org`), '');
  assert.deepEqual(server.received, []);
});

test('a link confirms no address of an account that was suspended or removed since', async () => {
  const chief = await administrator('chief-of-links');
  const ends = {
    suspended: (accountId: number) => cloud.administration.suspend(chief, { accountId, reason: 'test' }),
    removed: (accountId: number) => cloud.closings.remove(chief, accountId, 'test'),
  };
  for (const [end, run] of Object.entries(ends)) {
    const { accountId } = await newPrincipal(cloud.accounts, end);
    const token = await tokenFor(`${end}@example.org`);
    await run(accountId);
    await assert.rejects(confirm(token), code('account_suspended'), end);
    assert.equal((await cloud.administration.get(accountId)).email_confirmed, false);
  }
});

test('three mails an hour go to one address', async () => {
  await confirmed('eve');
  server.received.length = 0;
  for (let i = 0; i < 6; i++) await reset('eve@example.org');
  assert.equal(server.received.length, 3);
  cloud.clock.advance(HOUR_MS + 1);
  assert.notEqual(await reset('eve@example.org'), '');
});

test('three confirmations an hour go to one address, also of many requests and accounts at once', async () => {
  const [one, other] = [
    await newPrincipal(cloud.accounts, 'hasty'),
    await newPrincipal(cloud.accounts, 'rash'),
  ];
  const email = 'victim@example.org';
  const change = { email, currentPassword: 'correct horse', address: ADDRESS };
  await Promise.all([one, other].map((each) => cloud.accounts.update(by(each), change)));
  await cloud.mail.queue.whenIdle();
  const asked = Array.from({ length: 20 }, (_, i) =>
    cloud.mailedLinks.requestConfirmation(by(i % 2 === 0 ? one : other)),
  );
  const refused = (await Promise.allSettled(asked)).flatMap((result) =>
    result.status === 'rejected' ? [result.reason] : [],
  );
  assert.equal(refused.length, 19);
  assert.ok(refused.every(code('rate_limited')));
  await cloud.mail.queue.whenIdle();
  assert.equal(server.received.filter(({ to }) => to.includes(email)).length, 3);
  assert.notEqual((await confirm(await tokenFor(email))).account_id, undefined, 'the newest works');
});

test('an account has ten confirmations an hour mailed, whatever addresses it names', async () => {
  const spammer = await newPrincipal(cloud.accounts, 'spammer');
  const name = (email: string) =>
    cloud.accounts.update(by(spammer), { email, currentPassword: 'correct horse', address: ADDRESS });
  for (let i = 0; i < 14; i++) assert.equal((await name(`stranger-${i}@example.org`)).email_confirmed, false);
  await cloud.mail.queue.whenIdle();
  assert.equal(server.received.filter(({ subject }) => subject.startsWith('Confirm')).length, 10);
  await assert.rejects(cloud.mailedLinks.requestConfirmation(by(spammer)), code('rate_limited'));
  cloud.clock.advance(HOUR_MS + 1);
  await cloud.mailedLinks.requestConfirmation(by(spammer));
});

test('who confirms an address gets it from an account that only named it', async () => {
  const squatter = await newPrincipal(cloud.accounts, 'squatter');
  const email = 'squatter@example.org';
  const fields = { username: 'teacher', email, password: 'correct horse' };
  const { id } = await cloud.accounts.register(BACKGROUND, fields);
  // Until then the first one can log in with it.
  assert.equal((await login(email)).account.id, squatter.accountId);
  await confirm(await tokenFor(email));
  assert.equal((await login(email)).account.id, id);
  assert.equal((await cloud.accounts.profile(squatter)).email_confirmed, false);
  const third = { username: 'third', email, password: 'correct horse' };
  await assert.rejects(cloud.accounts.register(BACKGROUND, third), code('email_taken'));
  const change = { email, currentPassword: 'correct horse', address: ADDRESS };
  await assert.rejects(cloud.accounts.update(by(squatter), change), code('email_taken'));
});

test('an administrator mails a link to a confirmed address, and sees none', async () => {
  const chief = await administrator('mailer');
  const gus = await confirmed('gus');
  const mailed = await cloud.mailedLinks.mailReset(chief, gus.accountId);
  assert.equal(mailed.mailed_to, 'gus@example.org');
  assert.equal((await use(await tokenFor('gus@example.org'))).username, 'gus');
  const hal = await newPrincipal(cloud.accounts, 'hal');
  await assert.rejects(cloud.mailedLinks.mailReset(chief, hal.accountId), code('email_not_confirmed'));
  const { principal: other } = await administrator('colleague');
  await assert.rejects(cloud.mailedLinks.mailReset(chief, other.accountId), code('operator_required'));
});

test('an invitation by mail is shown to nobody, and its account has confirmed the address', async () => {
  const chief = await administrator('inviter');
  await assert.rejects(cloud.invitations.create(chief, { mail: true }), code('invalid_request'));
  const email = 'ida@example.org';
  const made = await cloud.invitations.create(chief, { email, mail: true });
  assert.deepEqual([made.url, made.mailed], [null, true]);
  const join = { token: await tokenFor(email), hosts: HOSTS, username: 'ida', password: 'correct horse' };
  const account = await cloud.invitations.join(BACKGROUND, { ...join, address: ADDRESS });
  assert.notEqual((await cloud.store.account(account.id))?.email_verified_at, null);
  assert.notEqual(await reset(email), '');
  const csv = 'username,email\njim,jim@example.org\njoe,\n';
  await assert.rejects(cloud.invitations.createMany(chief, { csv, mail: true }), (error) => {
    const fields = isAppError(error, 'invalid_request') ? (error.fields ?? []) : [];
    return fields.some(({ field }) => field === 'csv line 3, email');
  });
  assert.equal(await tokenFor('jim@example.org'), '');
  const table = { csv: 'username,email\njim,jim@example.org\njoe,joe@example.org\n', mail: true };
  await cloud.invitations.createMany(chief, table);
  for (const name of ['jim', 'joe']) assert.notEqual(await tokenFor(`${name}@example.org`), '');
});

test('an account says what it wants mail about', async () => {
  const kim = await newPrincipal(cloud.accounts, 'kim');
  const set = (mailAbout: readonly ('credits' | 'alarms')[]) =>
    cloud.accounts.update(by(kim), { mailAbout, address: ADDRESS });
  assert.deepEqual((await set(['credits', 'alarms', 'credits'])).mail_about, ['credits', 'alarms']);
  assert.deepEqual((await set([])).mail_about, []);
});

test('by domain: who gets mail there makes an account, and nobody else', async () => {
  const other = await openAccountFixture({ smtpUrl: server.url, registration: 'domain' });
  other.mail.queue.start();
  const { invitations, accounts } = other;
  const fields = { username: 'max', email: 'max@example.org', password: 'correct horse' };
  await assert.rejects(accounts.register(BACKGROUND, fields), code('registration_closed'));
  for (const email of ['max@example.com', 'max@sub.example.org', 'max@example.org.evil.example'])
    await assert.rejects(invitations.request(BACKGROUND, email), code('invalid_request'));
  const ask = async (email: string) => {
    assert.deepEqual(await invitations.request(BACKGROUND, email), {});
    await other.mail.queue.whenIdle();
    return server.received.findLast(({ to }) => to.includes(email.toLowerCase()))?.text ?? '';
  };
  const token = /#token=([\w-]+)/.exec(await ask('Max@Example.org'))?.[1] ?? '';
  const join = { token, hosts: HOSTS, username: 'max', password: 'correct horse', address: ADDRESS };
  const account = await invitations.join(BACKGROUND, join);
  assert.equal(account.email, 'max@example.org');
  assert.notEqual((await other.store.account(account.id))?.email_verified_at, null);
  const again = await ask('max@example.org');
  assert.match(again, /You already have an account: max/);
  assert.ok(!again.includes('#token='));
  await other.mail.queue.close();
  await other.close();
});

test('without a mail server all of it says so, and registering asks nobody to confirm', async () => {
  const quiet = await openAccountFixture();
  const lee = await newPrincipal(quiet.accounts, 'lee');
  const chief = by({ ...lee, isAdmin: true });
  const { mailedLinks, invitations } = quiet;
  await assert.rejects(
    async () => mailedLinks.requestReset(BACKGROUND, 'lee@example.org'),
    code('mail_not_set'),
  );
  await assert.rejects(mailedLinks.requestConfirmation(by(lee)), code('mail_not_set'));
  await assert.rejects(mailedLinks.mailReset(chief, lee.accountId), code('mail_not_set'));
  await assert.rejects(invitations.create(chief, { email: 'a@b.example', mail: true }), code('mail_not_set'));
  const second = { username: 'lee2', email: 'lee@example.org', password: 'correct horse' };
  await assert.rejects(quiet.accounts.register(BACKGROUND, second), code('email_taken'));
  assert.deepEqual(await quiet.mail.list(), []);
  await quiet.close();
});

test('a request does not start the work for the address, which would take time from its answer', async () => {
  await confirmed('greta');
  server.received.length = 0;
  await cloud.mailedLinks.requestReset(BACKGROUND, 'greta@example.org');
  await sleep(300);
  const [asked] = await cloud.metadata.all<{ state: string }>(
    'SELECT state FROM mails ORDER BY id DESC LIMIT 1',
  );
  assert.deepEqual([asked?.state, server.received.length], ['asked', 0]);
  assert.notEqual(await tokenFor('greta@example.org'), '');
});

test('the answer and its time are the same whether an account has the address or not', async () => {
  await confirmed('fay');
  const took = { known: [] as number[], unknown: [] as number[] };
  const answers = new Set<string>();
  // No mail is sent meanwhile: it would take time from either call, at random.
  await cloud.mail.queue.close();
  const ask = async (into: number[], email: string) => {
    const begin = performance.now();
    answers.add(JSON.stringify(await cloud.mailedLinks.requestReset(BACKGROUND, email)));
    into.push(performance.now() - begin);
  };
  for (let i = 0; i < 220; i++) {
    const turns = [() => ask(took.known, 'fay@example.org'), () => ask(took.unknown, 'nobody@example.org')];
    for (const turn of i % 2 === 0 ? turns : turns.toReversed()) await turn();
  }
  const median = (all: readonly number[]) => all.slice(20).sort((a, b) => a - b)[100] as number;
  const ratio = median(took.known) / median(took.unknown);
  assert.ok(ratio > 0.75 && ratio < 1.33, `medians ${median(took.known)} and ${median(took.unknown)} ms`);
  assert.equal(answers.size, 1);
});
