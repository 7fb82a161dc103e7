import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MailServer } from '../../../test/harness/mail-server.ts';
import { type AccountFixture, newPrincipal, openAccountFixture } from '../../testing/account-fixture.ts';
import { announceByMail } from './credit-mails.ts';

let server: MailServer;
let cloud: AccountFixture;
before(async () => {
  server = await new MailServer().open();
  cloud = await openAccountFixture({ smtpUrl: server.url });
});
after(async () => {
  await cloud.mail.queue.close();
  await cloud.close();
  await server.close();
});

test('who wants it is warned by mail, in the commit of the event', async () => {
  const { accountId } = await newPrincipal(cloud.accounts, 'ada');
  const sql = "UPDATE accounts SET email_verified_at = 1, mail_about = 'credits' WHERE id = ?";
  await cloud.metadata.commit([{ sql, params: [accountId] }]);
  const announce = announceByMail(
    () => [],
    cloud.mail.outbox,
    () => 'https://cloud.example.org',
  );
  const at = cloud.clock.now();
  const data = { state: 'low', credits: 1.5, burn_per_hour: 0.1, hours_left: 15 };
  const spend = { month: '2026-01', cap: 5, spent: 4.5, resets_at: '2026-02-01 00:00:00' };
  const news = [
    { type: 'credits.low', data },
    { type: 'credits.exhausted', data: { ...data, credits: 0, grace_ends_at: '2026-01-02 00:00:00' } },
    { type: 'credits.restored', data: { ...data, credits: 20 } },
    { type: 'billing.spend_warning', data: { ...spend, percent: 80 } },
    { type: 'billing.spend_cap_reached', data: spend },
    { type: 'billing.spend_cap_lifted', data: spend },
  ] as const;
  for (const one of news) await cloud.metadata.commit([...announce({ ...one, accountId, at })]);
  cloud.mail.queue.start();
  await cloud.mail.queue.whenIdle();
  const warnings = server.received.filter(({ subject }) => subject.startsWith('Your account'));
  assert.deepEqual(
    warnings.map(({ to, text }) => [to[0], text.split(/\r?\n/)[0]]),
    [
      ['ada@example.org', 'Credits left: 1.5. At the current usage, the credits last 15 hours.'],
      ['ada@example.org', 'Credits left: 0. Your machines run until 2026-01-02 00:00:00 UTC.'],
      ['ada@example.org', 'Credits left: 20.'],
      [
        'ada@example.org',
        'Spent in 2026-01: 4.5 credits. Your spend cap: 5 credits. ' +
          'At the cap, machines and databases are stopped; nothing is deleted.',
      ],
      [
        'ada@example.org',
        'Spent in 2026-01: 4.5 credits. Your spend cap: 5 credits. ' +
          'Machines and databases are stopped and nothing new can be created; nothing is deleted. ' +
          'Machines and databases start again when the cap is raised, or at 2026-02-01 00:00:00 UTC.',
      ],
      [
        'ada@example.org',
        'Spent in 2026-01: 4.5 credits. Machines and databases stopped by the spend cap are starting again.',
      ],
    ],
  );
});
