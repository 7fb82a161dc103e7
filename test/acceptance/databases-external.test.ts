/** Databases on a server of the operator's own, and one that cannot be had. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { Client as Driver } from 'pg';
import { NO_POSTGRESQL } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { operatorServer } from '../harness/operator-server.ts';

const PASSWORD = 'not-to-be-seen-anywhere';

describe('a database server of the operator that is not there', () => {
  let cloud: CloudProcess;
  let user: Client;
  before(async () => {
    const env = {
      CLOUDLET_POSTGRESQL_URL: `postgresql://maker:${PASSWORD}@127.0.0.1:1/postgres`,
      CLOUDLET_MONGODB_URL: `mongodb://maker:${PASSWORD}@127.0.0.1:1/`,
    };
    cloud = await CloudProcess.start({ env });
    user = await new Client(cloud.api).newUser();
  });
  after(() => cloud.stop());

  for (const engine of ['postgresql', 'mongodb']) {
    test(`${engine} is unavailable with the fix, others work, and its password is nowhere`, async () => {
      const refused = await user.call('/api/databases', { json: { name: engine, engine } });
      assert.deepEqual([refused.status, refused.body.code], [503, 'engine_unavailable']);
      assert.match(refused.body.detail, /127\.0\.0\.1:1 cannot be reached/);
      assert.match(refused.body.hint, new RegExp(`CLOUDLET_${engine.toUpperCase()}_URL`));
      const made = await user.call('/api/databases', { json: { name: `not-${engine}` } });
      assert.equal(made.status, 201);
      const engines = await user.call('/api/database-engines');
      const [found] = engines.body.filter((each: { engine: string }) => each.engine === engine);
      assert.deepEqual([found.available, found.source], [false, 'external']);
      const status = await user.call('/api/system/status');
      const said = JSON.stringify([refused.body, engines.body, status.body]) + cloud.output;
      assert.ok(!said.includes(PASSWORD));
    });
  }
});

const isThere = globSync('build/programs/postgresql-*/usr').length > 0;

test("databases are made, used and kept on the operator's server", {
  skip: isThere ? false : NO_POSTGRESQL,
}, async (t) => {
  const server = await operatorServer(PASSWORD);
  t.after(() => server.close());
  const cloud = await CloudProcess.start({ env: { CLOUDLET_POSTGRESQL_URL: server.url } });
  t.after(() => cloud.stop());
  let user = await new Client(cloud.api).newUser();
  const made = await user.call('/api/databases', { json: { name: 'shop', engine: 'postgresql' } });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  assert.equal(made.body.connection.port, server.port);
  const driver = new Driver(made.body.connection.uri);
  await driver.connect();
  await driver.query('CREATE TABLE notes AS SELECT 1 AS n');
  await driver.end();
  const path = `/api/databases/${made.body.database_id}`;
  const copy = await user.call('/api/databases', {
    json: { name: 'copy', engine: 'postgresql', from: { database_id: made.body.database_id } },
  });
  assert.equal(copy.status, 201, JSON.stringify(copy.body));
  await cloud.crash();
  await cloud.start();
  user = new Client(cloud.api, user.key);
  const asked = await user.call(`${path}/query`, { json: { statement: 'SELECT n FROM notes' } });
  assert.deepEqual(asked.body.rows, [[1]]);
  const removed = await user.call(path, { method: 'DELETE' });
  assert.equal(removed.status, 200, JSON.stringify(removed.body));
  const again = new Driver(made.body.connection.uri);
  await assert.rejects(again.connect());
  const back = await user.call(`${path}/undelete`, { method: 'POST' });
  assert.equal(back.status, 200, JSON.stringify(back.body));
  const rows = await user.call(`${path}/query`, { json: { statement: 'SELECT n FROM notes' } });
  assert.deepEqual(rows.body.rows, [[1]]);
  assert.ok(!cloud.output.includes(PASSWORD));
});
