/** Slots for processes of databases: accounts with endless statements beside one with few calls. */
import assert from 'node:assert/strict';
import { readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

let cloud: CloudProcess;
before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_DATABASE_PROCESSES: '4' } });
});
after(() => cloud.stop());

const ENDLESS = 'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c';

async function newDatabases(count: number): Promise<{ user: Client; ids: string[] }> {
  const user = await new Client(cloud.api).newUser();
  const ids: string[] = [];
  for (let index = 0; index < count; index++) {
    const { status, body } = await user.call('/api/databases', { json: { name: `d${index}` } });
    assert.deepEqual([status, body.state], [201, 'ready'], JSON.stringify(body));
    ids.push(body.database_id);
  }
  return { user, ids };
}

test('endless statements of two accounts cost a third no error', async () => {
  const attackers = [await newDatabases(4), await newDatabases(4)];
  const victim = await newDatabases(2);
  const ask = (user: Client, id: string, statement: string) =>
    user.call(`/api/databases/${id}/query`, { json: { statement } });
  const told: { status: number; code: string; retryAfter: string | null }[] = [];
  let isOver = false;
  const attacks = attackers.flatMap(({ user, ids }) =>
    ids.map(async (id) => {
      while (!isOver) {
        const { status, body, headers } = await ask(user, id, ENDLESS);
        told.push({ status, code: body.code, retryAfter: headers.get('retry-after') });
      }
    }),
  );
  for (let round = 0; round < 4; round++)
    for (const id of victim.ids) {
      const { status, body } = await ask(victim.user, id, 'SELECT 1');
      assert.equal(status, 200, JSON.stringify(body));
    }
  await eventually('an answer to an attacker', () => told.length > 0);
  isOver = true;
  await Promise.all(attacks);
  // A statement that timed out, was ended for another account, or never ran.
  for (const { status, code, retryAfter } of told) {
    assert.equal(code, status === 408 ? 'query_timeout' : 'engine_unavailable');
    if (status !== 408) assert.deepEqual([status, retryAfter !== null], [503, true]);
  }
});

test('a database whose process cannot start is not made, and leaves nothing', async () => {
  const user = await new Client(cloud.api).newUser();
  const code = join(cloud.dataDir, 'databases', 'sqlite', '.code');
  for (const name of readdirSync(code)) renameSync(join(code, name), join(code, `${name}.away`));
  const refused = await user.call('/api/databases', { json: { name: 'shop' } });
  assert.deepEqual(
    [refused.status, refused.body.code],
    [503, 'engine_unavailable'],
    JSON.stringify(refused.body),
  );
  assert.deepEqual((await user.call('/api/databases')).body, []);
  for (const name of readdirSync(code)) renameSync(join(code, name), join(code, name.replace('.away', '')));
  const made = await user.call('/api/databases', { json: { name: 'shop' } });
  assert.deepEqual([made.status, made.body.state], [201, 'ready'], JSON.stringify(made.body));
});
