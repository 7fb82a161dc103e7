import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { BACKGROUND } from '../../metadata/change.ts';
import { Alarms } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { type AccountFixture, by, openAccountFixture } from '../../testing/account-fixture.ts';
import { operatorPostgresql } from '../../testing/operator-postgresql.ts';
import type { OperatorServer } from '../../testing/operator-server.ts';
import { noPostgresql } from '../../testing/postgresql-fixture.ts';
import { PostgresqlMetadata } from './postgresql-metadata.ts';

describe('invitations at two nodes', { skip: noPostgresql }, () => {
  let server: OperatorServer;
  let nodes: AccountFixture[];
  before(async () => {
    server = await operatorPostgresql();
    const joined = (nodeId: string) =>
      PostgresqlMetadata.open({
        url: server.url('postgres', 'of-the-operator'),
        clock: systemClock,
        alarms: new Alarms(systemClock),
        onTakenOver: assert.fail,
        node: { nodeId, name: nodeId, url: `http://${nodeId}:1`, version: '1', isHost: false },
      });
    nodes = [];
    for (const id of ['nod-1', 'nod-2'])
      nodes.push(await openAccountFixture({ registration: 'invitation', openMetadata: () => joined(id) }));
  });
  after(async () => {
    for (const node of nodes ?? []) await node.close();
    await server?.close();
  });

  test('a link makes as many accounts as it says, whichever node is asked; an expired one ends once', async () => {
    const [one, two] = nodes as [AccountFixture, AccountFixture];
    const fields = { username: 'chief', email: 'chief@example.org', isAdmin: true };
    const { api_key } = await one.administration.create(BACKGROUND, fields);
    const chief = by(await one.authenticator.authenticate({ apiKey: api_key ?? '' }));
    for (const places of [1, 5]) {
      const end = new Date(one.clock.now() + 60_000).toISOString();
      const wanted = { max_uses: places, credits: 2, account_expires_at: end };
      const { url } = await one.invitations.create({ ...chief, record: () => [] }, wanted);
      const token = new URL(url ?? '').hash.slice('#token='.length);
      const tries = Array.from({ length: 16 }, (_, i) => {
        const username = `of-${places}-${i}`;
        const who = { username, email: `${username}@example.org`, password: 'correct horse' };
        const node = [one, two][i % 2] as AccountFixture;
        const joining = { ...who, token, hosts: ['127.0.0.1'], address: '192.0.2.7' };
        return node.invitations.join({ record: () => [] }, joining);
      });
      const results = await Promise.allSettled(tries);
      const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
      assert.equal(results.length - refused.length, places);
      for (const reason of refused) assert.ok(isAppError(reason, 'invalid_link'), String(reason));
    }
    const { invitations } = await two.invitations.createMany(
      { ...chief, record: () => [] },
      { csv: 'username,credits\nx-1,1.5\nx-2,\n' },
    );
    assert.deepEqual(
      invitations.map(({ credits }) => credits),
      [1.5, 0],
    );
    for (const node of nodes) node.clock.advance(60_000);
    await Promise.all(nodes.map((node) => node.administration.expire()));
    const accounts = await Array.fromAsync(two.administration.list({ afterId: 0, limit: 100 }));
    const expired = accounts.filter((account) => account.suspended_reason === 'the account has expired');
    assert.deepEqual([accounts.length, expired.length], [7, 6]);
  });
});
