import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MailServer } from '../../test/harness/mail-server.ts';
import { BACKGROUND, Changes } from '../metadata/change.ts';
import { type AccountFixture, openAccountFixture } from '../testing/account-fixture.ts';
import { openMailFixture } from '../testing/mail-fixture.ts';
import { tellAlarms } from './alarm-mails.ts';
import { MAIL_ALARM } from './mail-queue.ts';

const DAY_MS = 24 * 3_600_000;
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

/** An account whose holder has confirmed the address. */
async function account(username: string, isAdmin: boolean, about: string): Promise<void> {
  const fields = { username, email: `${username}@example.org`, password: 'a long correct horse' };
  const { id } = await fixture.accounts.create(BACKGROUND, fields, { isAdmin });
  const sql = 'UPDATE accounts SET email_verified_at = 1, mail_about = ? WHERE id = ?';
  await fixture.metadata.commit([{ sql, params: [about, id] }]);
}

test('administrators who want it get one mail of an alarm, another a day later, and none of mail itself', async () => {
  await account('chief', true, 'alarms');
  await account('silent', true, 'credits');
  await account('user', false, 'alarms');
  const mail = openMailFixture({ ...fixture, url: server.url });
  const tell = async () => {
    const { outbox, mailStore, alarms } = mail;
    const changes = new Changes({ metadata: fixture.metadata });
    const list = () => alarms.list().map((alarm) => ({ ...alarm, node: null }));
    const mailUrl = () => 'https://cloud.example.org';
    await tellAlarms({ changes, mailStore, outbox, clock: fixture.clock, alarms: list, mailUrl });
    mail.queue.start();
    await mail.queue.whenIdle();
    return server.received.splice(0).map(({ to, subject, text }) => ({ to, subject, text }));
  };
  assert.deepEqual(await tell(), []);
  mail.alarms.raise('disk_full', 'The disk is full', 'Make space');
  const [first, ...others] = await tell();
  assert.deepEqual(
    [first?.to, first?.subject, others],
    [['chief@example.org'], 'Cloudlet alarm: disk_full', []],
  );
  assert.match(
    first?.text ?? '',
    /The disk is full[\s\S]*What to do: Make space[\s\S]*https:\/\/cloud\.example\.org\//,
  );
  assert.deepEqual(await tell(), [], 'once');
  mail.alarms.raise(MAIL_ALARM, 'The mail server is down', 'Start it');
  assert.deepEqual(await tell(), []);
  fixture.clock.advance(DAY_MS + 1);
  assert.deepEqual(
    (await tell()).map(({ subject }) => subject),
    ['Cloudlet alarm: disk_full'],
    'it still stands a day later',
  );
  mail.alarms.clear('disk_full');
  fixture.clock.advance(DAY_MS + 1);
  assert.deepEqual(await tell(), []);
  await mail.queue.close();
});
