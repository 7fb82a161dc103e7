import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { MailServer } from '../../../test/harness/mail-server.ts';
import { BACKGROUND } from '../../metadata/change.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import {
  type AccountFixture,
  newPrincipal,
  openAccountFixture,
  testSealer,
} from '../../testing/account-fixture.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { PostgresqlMetadata } from './postgresql-metadata.ts';

describe('mail at two nodes that share PostgreSQL', { skip: noPostgresql }, () => {
  let server: OperatorServer;
  let mailServer: MailServer;
  let nodes: AccountFixture[];
  before(async () => {
    server = await operatorPostgresql();
    mailServer = await new MailServer().open();
    const joined = (nodeId: string) =>
      PostgresqlMetadata.open({
        url: server.url('postgres', 'of-the-operator'),
        clock: systemClock,
        alarms: new Alarms(systemClock),
        onTakenOver: assert.fail,
        node: { nodeId, name: nodeId, url: `http://${nodeId}:1`, version: '1', isHost: false },
      });
    const sealer = testSealer();
    nodes = [];
    for (const id of ['nod-1', 'nod-2'])
      nodes.push(
        await openAccountFixture({ smtpUrl: mailServer.url, sealer, openMetadata: () => joined(id) }),
      );
  });
  after(async () => {
    for (const node of nodes ?? []) {
      await node.mail.queue.close();
      await node.close();
    }
    await mailServer?.close();
    await server?.close();
  });

  const tokenFor = (email: string) => {
    const mail = mailServer.received.findLast(({ to }) => to.includes(email));
    return /#token=([\w-]+)/.exec(mail?.text ?? '')?.[1] ?? '';
  };

  test('a node sends what another queued; links work at either, once', async () => {
    const [one, two] = nodes as [AccountFixture, AccountFixture];
    const ada = await newPrincipal(one.accounts, 'ada');
    two.mail.queue.start();
    await two.mail.queue.whenIdle();
    const link = { token: tokenFor('ada@example.org'), hosts: ['127.0.0.1'] };
    const confirmed = await Promise.allSettled(
      [one, two, one, two].map(({ mailedLinks }) => mailedLinks.confirm({ record: () => [] }, link)),
    );
    assert.equal(confirmed.filter(({ status }) => status === 'fulfilled').length, 1);
    assert.equal((await two.accounts.profile(ada)).email_confirmed, true);
    // Requested at both nodes at once, and still three an hour.
    mailServer.received.length = 0;
    for (let i = 0; i < 4; i++)
      for (const { mailedLinks } of nodes) await mailedLinks.requestReset(BACKGROUND, 'Ada@example.org');
    await two.mail.queue.whenIdle();
    assert.equal(mailServer.received.length, 3);
    const used = { token: tokenFor('ada@example.org'), password: 'another horse', hosts: ['127.0.0.1'] };
    const done = await one.resetLinks.use(BACKGROUND, { ...used, address: '192.0.2.7' });
    assert.equal(done.username, 'ada');
    const about = two.mail.outbox.tell({
      accountId: ada.accountId,
      subject: 'Low',
      text: 'Low',
      lifeMs: 60_000,
      about: 'credits',
    });
    await two.metadata.commit(about);
    await two.accounts.update({ principal: ada, record: () => [] }, { mailAbout: ['credits'], address: '' });
    await two.metadata.commit(
      two.mail.outbox.tell({
        accountId: ada.accountId,
        subject: 'Out',
        text: 'Out',
        lifeMs: 60_000,
        about: 'credits',
      }),
    );
    await two.mail.queue.whenIdle();
    assert.deepEqual(
      mailServer.received.slice(3).map(({ subject }) => subject),
      ['Out'],
    );
  });
});
