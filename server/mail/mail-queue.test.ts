import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { MailServer, rudeServer } from '../../test/harness/mail-server.ts';
import { isAppError } from '../platform/errors.ts';
import { type AccountFixture, by, newPrincipal, openAccountFixture } from '../testing/account-fixture.ts';
import { openMailFixture } from '../testing/mail-fixture.ts';
import { MAIL_ALARM } from './mail-queue.ts';

const HOUR_MS = 3_600_000;
let fixture: AccountFixture;
let server: MailServer;
before(async () => {
  fixture = await openAccountFixture();
  server = await new MailServer().open();
});
after(async () => {
  await server.close();
  await fixture.close();
});
beforeEach(() => {
  server.received.length = 0;
  server.refuse = () => undefined;
});

const open = (url: string, more: Partial<Parameters<typeof openMailFixture>[0]> = {}) =>
  openMailFixture({ ...fixture, url, ...more });
type Mail = ReturnType<typeof open>;
const hello = { kind: 'test', accountId: 1, subject: 'Hello', text: 'Hello, Ada\n', lifeMs: HOUR_MS };

async function put(mail: Mail, to: string, more: Partial<typeof hello> = {}): Promise<void> {
  await fixture.metadata.commit(mail.outbox.mail({ ...hello, to, ...more }));
}

async function run(mail: Mail): Promise<void> {
  mail.queue.start();
  await mail.queue.whenIdle();
}

test('a mail in a commit is sent once, with what it says, and its text is then forgotten', async () => {
  const mail = open(server.url);
  await put(mail, 'ada@example.org', { text: 'https://cloud.example.org/#token=abc\nGrüße\n' });
  const waiting = await fixture.metadata.get<{ text: string }>(
    'SELECT hex(sealed) AS text FROM mails ORDER BY id DESC LIMIT 1',
  );
  assert.ok(waiting?.text && !waiting.text.includes(Buffer.from('token=abc').toString('hex').toUpperCase()));
  await run(mail);
  const [only] = server.received;
  assert.equal(server.received.length, 1);
  assert.deepEqual(
    [only?.from, only?.to, only?.subject],
    ['cloud@example.org', ['ada@example.org'], 'Hello'],
  );
  assert.match(only?.text ?? '', /^https:\/\/cloud\.example\.org\/#token=abc\r?\nGrüße/);
  assert.match(only?.raw ?? '', /^From: The cloud <cloud@example\.org>\r$/m);
  assert.match(only?.raw ?? '', /^Auto-Submitted: auto-generated\r$/im);
  const [row] = await mail.list();
  assert.deepEqual([row?.state, row?.tries, row?.reason], ['sent', 1, null]);
  assert.equal(only?.messageId, `<${row?.id}@example.org>`);
  assert.deepEqual(await fixture.metadata.all('SELECT 1 FROM mails WHERE sealed IS NOT NULL'), []);
  await mail.queue.close();
});

test('one address is one recipient, and no header comes from what somebody typed', async () => {
  const mail = open(server.url);
  const names = [
    '"a, b"@example.org',
    'ada@example.org,eve@example.org',
    'ada@example.org\r\nBcc: eve@example.org',
  ];
  for (const [index, name] of names.entries()) await put(mail, name, { accountId: 10 + index });
  await put(mail, 'ben@example.org', { subject: 'Hello\r\nBcc: eve@example.org', accountId: 20 });
  await run(mail);
  await mail.queue.close();
  const all = server.received.flatMap(({ to }) => to);
  assert.ok(!all.includes('eve@example.org'), String(all));
  const ben = server.received.find(({ to }) => to.includes('ben@example.org'));
  assert.ok(ben && !/^Bcc:/m.test(ben.raw));
});

test('a refused address fails at once and alarms nobody; others get theirs', async () => {
  const mail = open(server.url);
  server.refuse = (address) => (address.startsWith('gone@') ? 'no such mailbox' : undefined);
  await put(mail, 'gone@example.org', { accountId: 2 });
  await put(mail, 'ada@example.org', { accountId: 3 });
  await run(mail);
  const rows = await mail.list();
  const of = (to: string) => rows.find((row) => row.to === to);
  assert.deepEqual(of('gone@example.org')?.state, 'failed');
  assert.match(of('gone@example.org')?.reason ?? '', /no such mailbox/);
  assert.equal(of('ada@example.org')?.state, 'sent');
  assert.deepEqual(mail.alarms.list(), []);
  await mail.queue.close();
});

test('a server that is down is an alarm, and gets the mail when it is back', async () => {
  const other = await new MailServer().open();
  await other.close();
  const mail = open(other.url);
  await put(mail, 'ada@example.org', { accountId: 4 });
  await run(mail);
  assert.deepEqual(
    mail.alarms.list().map(({ code }) => code),
    [MAIL_ALARM],
  );
  const [row] = await mail.list();
  assert.deepEqual([row?.state, row?.tries], ['pending', 1]);
  await mail.queue.close();
  await other.open();
  // Another start, as after a kill: it knows only the rows.
  const next = open(other.url);
  fixture.clock.advance(6000);
  await run(next);
  assert.deepEqual(
    other.received.map(({ to }) => to),
    [['ada@example.org']],
  );
  assert.deepEqual(next.alarms.list(), []);
  assert.equal((await next.list())[0]?.state, 'sent');
  await next.queue.close();
  await other.close();
});

const RUDE = {
  'says nothing': () => {},
  'breaks off': (socket: import('node:net').Socket) => void socket.end(),
  'speaks another language': (socket: import('node:net').Socket) =>
    void socket.end('HTTP/1.1 400 Bad\r\n\r\n'),
  'refuses everybody': (socket: import('node:net').Socket) => void socket.end('554 go away\r\n'),
  'never ends its greeting': (socket: import('node:net').Socket) => {
    const timer = setInterval(() => socket.write('220-hello\r\n'), 20);
    socket.on('close', () => clearInterval(timer));
  },
};
for (const [what, serve] of Object.entries(RUDE)) {
  test(`a server that ${what} keeps nothing waiting for long`, async () => {
    const rude = await rudeServer(serve);
    const mail = open(rude.url, { silenceMs: 300, totalMs: 1000 });
    await put(mail, 'ada@example.org', { accountId: 5 });
    await run(mail);
    assert.deepEqual(
      mail.alarms.list().map(({ code }) => code),
      [MAIL_ALARM],
    );
    const [row] = await mail.list();
    assert.deepEqual([row?.state, row?.tries], ['pending', 1], row?.reason ?? '');
    assert.deepEqual(mail.reports, []);
    await mail.queue.close();
    await rude.close();
    await fixture.metadata.commit([{ sql: "DELETE FROM mails WHERE state = 'pending'", params: [] }]);
  });
}

test('a stop ends an attempt that hangs, which the next start repeats under the same Message-ID', async () => {
  const rude = await rudeServer(() => {});
  const mail = open(rude.url);
  await put(mail, 'ada@example.org', { accountId: 6 });
  mail.queue.start();
  while (rude.connections() === 0) await new Promise((done) => setTimeout(done, 10));
  await mail.queue.close();
  await rude.close();
  const [row] = await mail.list();
  assert.deepEqual([row?.state, row?.tries], ['pending', 0]);
  const next = open(server.url);
  await run(next);
  assert.equal(server.received[0]?.messageId, `<${row?.id}@example.org>`);
  await next.queue.close();
});

test('the node without the lease sends nothing', async () => {
  const mail = open(server.url, { mayBegin: async () => false });
  await put(mail, 'ada@example.org', { accountId: 7 });
  await run(mail);
  await mail.queue.close();
  assert.equal(server.received.length, 0);
  const next = open(server.url);
  await run(next);
  await next.queue.close();
  assert.equal(server.received.length, 1);
});

test('what is of no use any more is not sent', async () => {
  const mail = open(server.url);
  await put(mail, 'ada@example.org', { accountId: 8 });
  fixture.clock.advance(HOUR_MS);
  await run(mail);
  await mail.queue.close();
  assert.equal(server.received.length, 0);
  assert.equal((await mail.list())[0]?.state, 'failed');
});

test('who asks by an address gets what is found for it, and nobody more than the limit', async () => {
  const mail = open(server.url);
  mail.outbox.answers('reset', async (_change, recipient) =>
    recipient === 'ada@example.org' ? { ...hello, accountId: 9 } : null,
  );
  const ask = { kind: 'reset', lifeMs: HOUR_MS, most: 3, withinMs: HOUR_MS };
  for (let i = 0; i < 5; i++) {
    for (const recipient of ['ada@example.org', 'nobody@example.org'])
      await fixture.metadata.commit(mail.outbox.ask({ ...ask, recipient }));
  }
  await run(mail);
  assert.deepEqual(
    server.received.map(({ to }) => to[0]),
    Array(3).fill('ada@example.org'),
  );
  fixture.clock.advance(HOUR_MS + 1);
  await fixture.metadata.commit(mail.outbox.ask({ ...ask, recipient: 'ada@example.org' }));
  await mail.queue.whenIdle();
  assert.equal(server.received.length, 4);
  await mail.queue.close();
});

test('a request that cannot be answered holds up no other, and is answered later', async () => {
  const mail = open(server.url);
  let isBroken = true;
  mail.outbox.answers('link', async (_change, recipient) => {
    if (isBroken && recipient.startsWith('broken')) throw new Error('no such column');
    return { accountId: 1, subject: 'Link', text: 'here' };
  });
  const ask = { kind: 'link', lifeMs: HOUR_MS, most: 3, withinMs: HOUR_MS };
  const people = [...Array.from({ length: 25 }, (_, i) => `broken-${i}`), 'ada'];
  for (const name of people)
    await fixture.metadata.commit(mail.outbox.ask({ ...ask, recipient: `${name}@example.org` }));
  await run(mail);
  const reached = () => server.received.flatMap(({ to }) => to);
  assert.deepEqual(reached(), ['ada@example.org']);
  assert.equal(mail.reports.length, 25);
  assert.match(
    mail.reports[0] ?? '',
    /^preparing a requested mail failed; it will be repeated: .*no such column/,
  );
  isBroken = false;
  fixture.clock.advance(60_001);
  await mail.queue.whenIdle();
  assert.equal(reached().length, people.length);
  await mail.queue.close();
});

test('an account is told what it wants to hear, at an address that it has confirmed', async () => {
  const mail = open(server.url);
  const { accountId } = await newPrincipal(fixture.accounts, 'wanting');
  const tell = () =>
    fixture.metadata.commit(mail.outbox.tell({ ...hello, accountId, about: 'credits', lifeMs: HOUR_MS }));
  const set = (sql: string) => fixture.metadata.commit([{ sql: `UPDATE accounts SET ${sql}`, params: [] }]);
  await tell();
  await set("mail_about = 'credits,alarms'");
  await tell();
  await set(`email_verified_at = 1, mail_about = 'alarms'`);
  await tell();
  await run(mail);
  assert.equal(server.received.length, 0);
  await set("mail_about = 'credits,alarms'");
  await tell();
  await mail.queue.whenIdle();
  assert.deepEqual(
    server.received.map(({ to }) => to),
    [['wanting@example.org']],
  );
  await mail.queue.close();
});

test('without a mail server nothing is put anywhere, and a test mail says so', async () => {
  const mail = open('');
  assert.deepEqual(mail.outbox.mail({ ...hello, to: 'ada@example.org' }), []);
  const { enabled, server: none } = await mail.mails.status();
  assert.deepEqual([enabled, none], [false, null]);
  const admin = await newPrincipal(fixture.accounts, 'admin');
  await assert.rejects(mail.mails.test(by(admin), 'ada@example.org'), (error) =>
    isAppError(error, 'mail_not_set'),
  );
});
