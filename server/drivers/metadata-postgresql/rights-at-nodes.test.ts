/** Rights and suspensions of an account that two nodes change: one in the middle of the other's request. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { BACKGROUND } from '../../metadata/change.ts';
import type { Metadata } from '../../metadata/metadata.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { type AccountFixture, by, newPrincipal, openAccountFixture } from '../../testing/account-fixture.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { PostgresqlMetadata } from './postgresql-metadata.ts';

describe('rights of accounts at two nodes', { skip: noPostgresql }, () => {
  let server: OperatorServer;
  let nodes: readonly [AccountFixture, AccountFixture];
  /** Runs once, when the first node has read all that its next commit depends on. */
  let inBetween: (() => Promise<unknown>) | undefined;
  let made = 0;
  before(async () => {
    server = await operatorPostgresql();
    nodes = [await joined('nod-1', interrupted), await joined('nod-2', (metadata) => metadata)];
  });
  after(async () => {
    for (const node of nodes ?? []) await node.close();
    await server?.close();
  });
  afterEach(() => assert.equal(inBetween, undefined, 'the other request was made'));

  const joined = (nodeId: string, of: (metadata: Metadata) => Metadata) =>
    openAccountFixture({
      closedAccountDays: 7,
      openMetadata: async () =>
        of(
          await PostgresqlMetadata.open({
            url: server.url('postgres', 'of-the-operator'),
            clock: systemClock,
            alarms: new Alarms(systemClock),
            onTakenOver: assert.fail,
            node: { nodeId, name: nodeId, url: `http://${nodeId}:1`, version: '1', isHost: false },
          }),
        ),
    });

  function interrupted(metadata: Metadata): Metadata {
    return {
      get: metadata.get.bind(metadata),
      all: metadata.all.bind(metadata),
      snapshot: metadata.snapshot.bind(metadata),
      close: metadata.close.bind(metadata),
      commit: async (statements) => {
        const work = inBetween;
        inBetween = undefined;
        await work?.();
        return metadata.commit(statements);
      },
    };
  }

  async function administrator() {
    const username = `chief-${++made}`;
    const fields = { username, email: `${username}@example.org`, isAdmin: true };
    const { api_key } = await nodes[1].administration.create(BACKGROUND, fields);
    const chief = await nodes[1].authenticator.authenticate({ apiKey: api_key ?? '' });
    return () => by(chief);
  }

  const newAccount = async () => (await newPrincipal(nodes[1].accounts, `user-${++made}`)).accountId;
  const rowOf = (id: number) => nodes[1].store.account(id);

  test('whoever is resumed while an administrator removes the account stays suspended', async () => {
    const call = await administrator();
    const id = await newAccount();
    await nodes[1].administration.suspend(call(), { accountId: id, reason: 'spam' });
    inBetween = () => nodes[1].closings.remove(call(), id, 'spam again');
    await assert.rejects(nodes[0].administration.resume(call(), id), { code: 'write_conflict' });
    const row = await rowOf(id);
    assert.deepEqual([row?.is_active, row?.suspended_reason], [0, 'spam'], 'no sign-in opens it');
  });

  test('a later end resumes no account that is suspended for another reason by then', async () => {
    const call = await administrator();
    const id = await newAccount();
    const { accountChanges, administration, changes, clock } = nodes[0];
    const endAt = (at: number) => new Date(at).toISOString();
    const setEnd = (expires_at: string) =>
      changes.run(call(), (change) => accountChanges.apply(change, call(), { id, expires_at }));
    await setEnd(endAt(clock.now() + 60_000));
    clock.advance(120_000);
    await administration.expire();
    assert.equal((await rowOf(id))?.is_active, 0);
    inBetween = () => nodes[1].administration.suspend(call(), { accountId: id, reason: 'spam' });
    await setEnd(endAt(clock.now() + 60_000));
    const row = await rowOf(id);
    assert.deepEqual([row?.is_active, row?.suspended_reason], [0, 'spam']);
  });

  test('nobody is made an administrator and an auditor, or an administrator with an end', async () => {
    const call = await administrator();
    const { clock } = nodes[0];
    const expires_at = new Date(clock.now() + 3_600_000).toISOString();
    for (const other of [{ is_auditor: true }, { expires_at }]) {
      const id = await newAccount();
      const make = (node: AccountFixture, wanted: object) =>
        node.changes.run(call(), (change) => node.accountChanges.apply(change, call(), { id, ...wanted }));
      inBetween = () => make(nodes[1], other);
      await assert.rejects(make(nodes[0], { is_admin: true }), { code: 'invalid_request' });
      assert.equal((await rowOf(id))?.is_admin, 0);
    }
  });

  test('the last administrator stays, also one who became it while closing the account', async () => {
    const call = await administrator();
    const first = call().principal;
    const leaver = await newPrincipal(nodes[1].accounts, `user-${++made}`);
    const { api_key } = await nodes[1].administration.showKey(call(), leaver.accountId);
    const own = await nodes[1].authenticator.authenticate({ apiKey: api_key ?? '' });
    const set = (id: number, is_admin: boolean) =>
      nodes[1].changes.run(call(), (change) =>
        nodes[1].accountChanges.apply(change, call(), { id, is_admin }),
      );
    for (const { id } of await Array.fromAsync(nodes[1].administration.list({ afterId: 0, limit: 100 })))
      if (id !== first.accountId) await set(id, false);
    inBetween = async () => {
      await set(leaver.accountId, true);
      await set(first.accountId, false);
    };
    await assert.rejects(nodes[0].closings.close(by(own)), { code: 'last_administrator' });
    assert.equal((await rowOf(leaver.accountId))?.is_active, 1);
  });

  test('no reset link outlasts the moment in which its account becomes an administrator', async () => {
    const call = await administrator();
    const id = await newAccount();
    inBetween = () =>
      nodes[1].changes.run(call(), (change) =>
        nodes[1].accountChanges.apply(change, call(), { id, is_admin: true }),
      );
    await assert.rejects(nodes[0].resetLinks.create(call(), id), { code: 'operator_required' });
    const links = await nodes[1].metadata.all('SELECT 1 AS one FROM setup_links WHERE account_id = ?', id);
    assert.deepEqual(links, []);
  });
});
