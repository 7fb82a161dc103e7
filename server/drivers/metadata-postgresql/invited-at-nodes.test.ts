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
  let chief: ReturnType<typeof by>;
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
    const [one] = nodes as [AccountFixture];
    const fields = { username: 'chief', email: 'chief@example.org', isAdmin: true };
    const { api_key } = await one.administration.create(BACKGROUND, fields);
    chief = by(await one.authenticator.authenticate({ apiKey: api_key ?? '' }));
  });
  after(async () => {
    for (const node of nodes ?? []) await node.close();
    await server?.close();
  });

  test('a name or an address is in one open invitation, whichever nodes are asked at once', async () => {
    const [one, two] = nodes as [AccountFixture, AccountFixture];
    const call = () => ({ ...chief, record: () => [] });
    const isInvited = (error: unknown) =>
      isAppError(error, 'invalid_request') &&
      (error.fields ?? []).every(({ message }) => message.includes('already in an open invitation'));
    const openOnes = async (email: string) => {
      const all = await Array.fromAsync(two.invitations.list({ afterId: '', limit: 1000 }));
      return all.filter((invitation) => invitation.state === 'open' && invitation.email === email).length;
    };
    for (let round = 0; round < 5; round++) {
      const name = `name-${round}`;
      const email = `${name}@example.org`;
      const made = await Promise.allSettled([
        one.invitations.create(call(), { username: name, email }),
        two.invitations.create(call(), { username: name.toUpperCase() }),
        one.invitations.create(call(), { email }),
        two.invitations.createMany(call(), { csv: `username,email\nother-${round},${email}\n` }),
      ]);
      const refused = made.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
      for (const reason of refused) assert.ok(isInvited(reason), String(reason));
      assert.ok((await openOnes(email)) <= 1);
      assert.ok(refused.length >= 2, `${refused.length} refused`);
      // Two that have expired are renewed for one address.
      const renewed = `renewed-${round}@example.org`;
      const mine = await Promise.all([
        one.invitations.create(call(), { label: 'of one', expires_in: 60 }),
        two.invitations.create(call(), { label: 'of two', expires_in: 60 }),
      ]);
      const renewals = await Promise.allSettled(
        nodes.map((node, i) => node.invitations.renew(call(), mine[i]?.id ?? '', { email: renewed })),
      );
      assert.equal(renewals.filter(({ status }) => status === 'fulfilled').length, 1);
      assert.equal(await openOnes(renewed), 1);
    }
  });

  test('a link makes as many accounts as it says, whichever node is asked; an expired one ends once', async () => {
    const [one, two] = nodes as [AccountFixture, AccountFixture];
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
