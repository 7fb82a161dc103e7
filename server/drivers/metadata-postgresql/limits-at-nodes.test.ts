/** Limits that statements count rows for, when two nodes add the last row at once. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { EmailLinkStore } from '../../accounts/links/links-store.ts';
import { SshKeyStore } from '../../compute/ssh-keys/ssh-key-store.ts';
import { SshKeys } from '../../compute/ssh-keys/ssh-keys.ts';
import { MailStore } from '../../mail/mails-store.ts';
import { CommitRejected, type Statement } from '../../metadata/metadata.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { newId } from '../../platform/ids.ts';
import { type AccountFixture, by, newPrincipal, openAccountFixture } from '../../testing/account-fixture.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { DeliveryStore } from '../../webhooks/deliveries-store.ts';
import { writeEvent } from '../../webhooks/events-store.ts';
import { WebhookStore } from '../../webhooks/store.ts';
import { PostgresqlMetadata } from './postgresql-metadata.ts';

const ROUNDS = 5;
const MOST = 5;

describe('limits at two nodes', { skip: noPostgresql }, () => {
  let server: OperatorServer;
  let nodes: readonly [AccountFixture, AccountFixture];
  let made = 0;
  before(async () => {
    server = await operatorPostgresql();
    nodes = [await joined('nod-1'), await joined('nod-2')];
  });
  after(async () => {
    for (const node of nodes ?? []) await node.close();
    await server?.close();
  });

  const joined = (nodeId: string) =>
    openAccountFixture({
      openMetadata: () =>
        PostgresqlMetadata.open({
          url: server.url('postgres', 'of-the-operator'),
          clock: systemClock,
          alarms: new Alarms(systemClock),
          onTakenOver: assert.fail,
          node: { nodeId, name: nodeId, url: `http://${nodeId}:1`, version: '1', isHost: false },
        }),
    });

  const newAccount = () => newPrincipal(nodes[0].accounts, `user-${++made}`);
  const store = (node: AccountFixture, statements: readonly Statement[]) =>
    node.metadata.commit(statements).then(
      () => true,
      (error: unknown) => {
        if (error instanceof CommitRejected) return false;
        throw error;
      },
    );
  const count = async (sql: string, param: number | string) =>
    Number((await nodes[0].metadata.get<{ count: number }>(sql, param))?.count);

  const newWebhook = (accountId: number, hears_audit: number) => ({
    webhook_id: newId('whk', nodes[0].clock),
    account_id: accountId,
    url: 'https://example.org/',
    description: '',
    events: '["*"]',
    hears_audit,
    sealed_secret: Buffer.from('secret'),
    created_at: 1,
  });

  test('SSH keys of an account', async () => {
    const owner = await newAccount();
    const services = nodes.map(({ metadata, changes, clock }) => {
      return new SshKeys({ changes, clock, keyStore: new SshKeyStore(metadata) });
    });
    const add = (i: number) => {
      const key = { name: `key-${i}`, public_key: `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}` };
      return services[i % 2]?.add(by(owner), key);
    };
    for (let i = 0; i < 99; i++) await add(i);
    await Promise.allSettled(Array.from({ length: 12 }, (_, i) => add(100 + i)));
    assert.equal((await services[0]?.list(owner))?.length, 100);
  });

  test('pending deliveries of a webhook', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { accountId } = await newAccount();
      await nodes[0].metadata.commit([
        new WebhookStore(nodes[0].metadata).insert(newWebhook(accountId, 0), 20),
      ]);
      const id = await count('SELECT max(id) AS count FROM webhooks WHERE account_id = ?', accountId);
      const deliveries = nodes.map(({ metadata }) => new DeliveryStore(metadata));
      const add = (i: number) => {
        const node = nodes[i % 2] as AccountFixture;
        const of = deliveries[i % 2] as DeliveryStore;
        const event = writeEvent({ accountId, type: 'webhook.test', at: 1, data: {} });
        const deliveryId = newId('dlv', node.clock);
        return store(node, [
          of.insertResolvedEvent(event),
          of.insertDelivery({ deliveryId, webhook: id, event: { rowIdOf: 0 }, failed: null, at: 1 }),
          ...[of.expectPending(id, MOST)].flat().map((one) => ({ expectChanges: 1, ...one })),
        ]);
      };
      await Promise.all(Array.from({ length: MOST + 6 }, (_, i) => add(i)));
      assert.equal(await deliveries[0]?.countPending(id), MOST);
    }
  });

  test('administrators whose webhooks receive all entries', async () => {
    const hearing =
      'SELECT count(DISTINCT account_id) AS count FROM webhooks WHERE hears_audit = 2 AND id > ?';
    await newAccount();
    await nodes[0].metadata.commit([{ sql: 'UPDATE accounts SET is_admin = 1', params: [] }]);
    for (let round = 0; round < ROUNDS; round++) {
      const owners = await Promise.all(Array.from({ length: 4 }, newAccount));
      await nodes[0].metadata.commit([{ sql: 'DELETE FROM webhooks', params: [] }]);
      const add = (accountId: number, i: number) => {
        const node = nodes[i % 2] as AccountFixture;
        const of = new WebhookStore(node.metadata);
        return store(node, [
          of.insert(newWebhook(accountId, 2), 20),
          ...[of.expectRoomToHearAll(accountId, 1)].flat().map((one) => ({ expectChanges: 1, ...one })),
        ]);
      };
      await Promise.all(owners.map(({ accountId }, i) => add(accountId, i)));
      assert.equal(await count(hearing, 0), 1);
    }
  });

  test('mails of a kind to an address, and for an account', async () => {
    const byAddress = 'SELECT count(*) AS count FROM mails WHERE recipient = ?';
    for (let round = 0; round < ROUNDS; round++) {
      const { accountId } = await newAccount();
      const mail = ({ clock }: AccountFixture, kind: string, recipient: string) => {
        const row = { mailId: newId('mail', clock), accountId, kind, topic: '', recipient };
        return { ...row, sealed: Buffer.from('sealed'), at: 2, expiresAt: 1e13 };
      };
      const storeOf = ({ metadata }: AccountFixture) => new MailStore({ reads: metadata });
      const most = { most: MOST, mostOfAccount: MOST, since: 1 };
      const ways: ((node: AccountFixture, i: number) => Statement | readonly Statement[])[] = [
        (node) => storeOf(node).insertAsked(mail(node, 'asked', `asked-${round}`), most),
        (node) => storeOf(node).insertUpTo(mail(node, 'sent', `sent-${round}`), most),
        (node, i) => storeOf(node).insertUpTo(mail(node, 'other', `of-account-${round}-${i}`), most),
      ];
      for (const way of ways) {
        const add = (i: number) => {
          const node = nodes[i % 2] as AccountFixture;
          return store(node, [way(node, i)].flat());
        };
        await Promise.all(Array.from({ length: MOST + 6 }, (_, i) => add(i)));
      }
      const counts = [];
      for (const recipient of ['asked', 'sent']) counts.push(await count(byAddress, `${recipient}-${round}`));
      const ofAccount = "SELECT count(*) AS count FROM mails WHERE kind = 'other' AND account_id = ?";
      assert.deepEqual([...counts, await count(ofAccount, accountId)], [MOST, MOST, MOST]);
    }
  });

  test('links that confirm the address of an account: the newest one', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { accountId } = await newAccount();
      const ask = (node: AccountFixture, i: number) => {
        const link = { account_id: accountId, email: 'a@example.org', host: '', expiresAt: 1e13 };
        return store(
          node,
          new EmailLinkStore({ reads: node.metadata }).replace({ ...link, tokenHash: `${accountId} ${i}` }),
        );
      };
      await Promise.all(nodes.map(ask));
      assert.equal(
        await count('SELECT count(*) AS count FROM setup_links WHERE account_id = ?', accountId),
        1,
      );
    }
  });
});
