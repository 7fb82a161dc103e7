/** Mail of one sender does not delay that of others. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MailServer } from '../../test/harness/mail-server.ts';
import type { Call } from '../calls/principal.ts';
import { BACKGROUND } from '../metadata/change.ts';
import { type AccountFixture, by, newPrincipal, openAccountFixture } from '../testing/account-fixture.ts';

const CLASS = 40;
/** Mails in progress, and some turns. */
const SOON = 15;

let server: MailServer;
let cloud: AccountFixture;
before(async () => {
  server = await new MailServer().open();
  server.delayMs = 20;
  cloud = await openAccountFixture({ smtpUrl: server.url });
});
after(async () => {
  await cloud.mail.queue.close();
  await cloud.close();
  await server.close();
});

async function administrator(username: string): Promise<Call> {
  const fields = { username, email: `${username}@example.org`, password: 'a long correct horse' };
  const { id } = await cloud.accounts.create(BACKGROUND, fields, { isAdmin: true });
  const some = await newPrincipal(cloud.accounts, `${username}-keys`);
  return by({ ...some, accountId: id, username, isAdmin: true });
}

const table = (name: string, count: number) =>
  ['email', ...Array.from({ length: count }, (_, i) => `${name}-${i}@example.org`)].join('\n');

test('a class that is invited by mail delays no mail of others, and no other mail of its teacher', async () => {
  const [teacher, other] = [await administrator('teacher'), await administrator('other')];
  const invite = (call: Call, csv: string) => cloud.invitations.createMany(call, { csv, mail: true });
  await invite(teacher, table('pupil', CLASS));
  await invite(other, table('guest', 3));
  const ada = await newPrincipal(cloud.accounts, 'ada');
  await cloud.mail.mails.test(teacher, 'trial@example.org');
  const sql = 'UPDATE accounts SET email_verified_at = 1 WHERE id IN (?, ?)';
  await cloud.metadata.commit([{ sql, params: [ada.accountId, teacher.principal.accountId] }]);
  for (const name of ['ada', 'teacher'])
    await cloud.mailedLinks.requestReset(BACKGROUND, `${name}@example.org`);
  cloud.mail.queue.start();
  await cloud.mail.queue.whenIdle();
  const order = server.received.map(({ to, subject }) => `${to[0]?.split('@')[0]}: ${subject}`);
  assert.equal(order.filter((one) => one.startsWith('pupil-')).length, CLASS);
  const late = order.slice(SOON).filter((one) => !one.startsWith('pupil-'));
  assert.deepEqual(late, []);
});
