/**
 * Every operation that accepts an Idempotency-Key, at two nodes: both calls are sent at once, then again at
 * each. one-key.test.ts asks one cloud.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { CheckedClient } from '../harness/checked-client.ts';
import type { Answer, Client } from '../harness/client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { MailServer } from '../harness/mail-server.ts';
import { eventually } from '../harness/waiting.ts';
import { type Asked, OneKeyKit } from './one-key-kit.ts';
import { answerOf, CASES, envOf, takesKey, walk } from './one-key-walk.ts';

let mails: MailServer;
before(async () => {
  mails = await new MailServer().open();
});
after(() => mails?.close());

describe('one key at two nodes', { skip: noCluster }, () => {
  let cluster: Cluster;
  let kit: OneKeyKit;
  let database: pg.Client;
  before(async () => {
    cluster = await Cluster.start(2, envOf(mails.url));
    kit = new OneKeyKit(cluster.nodes, mails);
    await kit.prepare();
    database = new pg.Client(cluster.metadataUrl);
    await database.connect();
    await database.query(COUNT_KEPT);
  });
  after(async () => {
    await database?.end();
    await cluster?.stop();
  });

  walk(
    () => kit,
    async (key) => {
      const { rows } = await database.query('SELECT count(*) FROM answers_kept WHERE key = $1', [key]);
      return Number(rows[0].count);
    },
  );

  test('every call as an operation: one, with one result', async (t) => {
    const { operations } = (await CheckedClient.open(kit.nodes[0].base)).declaration;
    const mayWait = operations.filter((entry) => takesKey(entry) && '202' in entry.operation.responses);
    const names = mayWait.map(({ operation }) => operation.operationId);
    assert.ok(names.length > 60);
    for (const name of names) {
      const { ask, reads = false, once = false } = CASES[name] ?? {};
      // The cloud still has the first of its kind.
      if (ask === undefined || reads || once) continue;
      const n = `${name.toLowerCase()}-later`;
      const asked = await ask(kit, n);
      // The second call would use a key that has ended.
      if (asked.nextKey !== undefined) continue;
      await t.test(name, async () => {
        const [one, two] = await Promise.all(kit.nodes.map((node) => endOf(node, asked, n)));
        assert.deepEqual(two, one);
        assert.equal(one?.state, 'succeeded', JSON.stringify(one));
        if (asked.effects !== undefined) assert.equal(await asked.effects(), 1);
      });
    }
  });
});

/** The operation once it is complete. */
async function endOf(node: Client, asked: Asked, key: string): Promise<Answer['body']> {
  const { status, body } = await answerOf(node, { ...asked, prefer: 'respond-async' }, key);
  assert.equal(status, 202, `${asked.path}: ${JSON.stringify(body)}`);
  const caller = node.as(asked.key ?? ADMIN_KEY);
  return eventually(`the end of ${asked.path}`, async () => {
    const answer = await caller.call(`/api/operations/${body.operation_id}?wait=60`);
    return answer.body.state === 'running' ? null : answer.body;
  });
}

/** Records each stored answer, also one that a later one replaces. */
const COUNT_KEPT = `
  CREATE TABLE answers_kept (key text);
  CREATE FUNCTION note_kept() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO answers_kept VALUES (NEW.key); RETURN NULL; END';
  CREATE TRIGGER note_kept AFTER INSERT ON idempotency FOR EACH ROW EXECUTE FUNCTION note_kept()`;
