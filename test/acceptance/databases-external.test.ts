/** Databases on the operator's own server, and one that cannot be reached. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { Client as Driver } from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { ownMariadb, ownPostgresql } from '../harness/operator-server.ts';
import { eventually } from '../harness/waiting.ts';

const PASSWORD = 'not-to-be-seen-anywhere';

/** With the users' driver. Throws if it cannot connect. */
const asks = {
  postgresql: async (uri: string, sql: string) => {
    const driver = new Driver(uri);
    await driver.connect();
    await driver.query(sql);
    await driver.end();
  },
  mysql: async (uri: string, sql: string) => {
    const driver = await createConnection(uri);
    await driver.query(sql);
    await driver.end();
  },
};

describe('database servers of the operator that are not there', () => {
  let cloud: CloudProcess;
  let user: Client;
  before(async () => {
    const env = {
      CLOUDLET_POSTGRESQL_URL: `postgresql://maker:${PASSWORD}@127.0.0.1:1/postgres`,
      CLOUDLET_MYSQL_URL: `mysql://maker:${PASSWORD}@127.0.0.1:1`,
      CLOUDLET_MONGODB_URL: `mongodb://maker:${PASSWORD}@127.0.0.1:1/`,
    };
    cloud = await CloudProcess.start({ env });
    user = await new Client(cloud.api).newUser();
  });
  after(() => cloud.stop());

  for (const engine of ['postgresql', 'mysql', 'mongodb']) {
    test(`${engine} is unavailable with the fix, others work, and its password is nowhere`, async () => {
      const refused = await user.call('/api/databases', { json: { name: engine, engine } });
      assert.deepEqual([refused.status, refused.body.code], [503, 'engine_unavailable']);
      const logged = await eventually('the line of the log', async () =>
        cloud.output.split('\n').find((line) => line.includes(refused.body.request_id)),
      );
      assert.equal(JSON.parse(logged).level, 40, 'a refusal that was foreseen is a warning');
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

const isThere = (name: string) => globSync(`build/programs/${name}-*/usr`).length > 0;
const KINDS = [
  {
    engine: 'postgresql',
    setting: 'CLOUDLET_POSTGRESQL_URL',
    own: ownPostgresql,
    skip: isThere('postgresql') ? false : NO_POSTGRESQL,
  },
  {
    engine: 'mysql',
    setting: 'CLOUDLET_MYSQL_URL',
    own: ownMariadb,
    skip: isThere('mariadb') ? false : NO_MARIADB,
  },
] as const;

for (const { engine, setting, own, skip } of KINDS)
  test(`${engine}: databases are made, used and kept on the operator's server`, { skip }, async (t) => {
    const server = await own(PASSWORD);
    t.after(() => server.close());
    const cloud = await CloudProcess.start({ env: { [setting]: server.url } });
    t.after(() => cloud.stop());
    const ask = asks[engine];
    let user = await new Client(cloud.api).newUser();
    const made = await user.call('/api/databases', { json: { name: 'shop', engine } });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    assert.equal(made.body.connection.port, server.port);
    await ask(made.body.connection.uri, 'CREATE TABLE notes AS SELECT 1 AS n');
    const path = `/api/databases/${made.body.database_id}`;
    const copy = await user.call('/api/databases', {
      json: { name: 'copy', engine, from: { database_id: made.body.database_id } },
    });
    assert.equal(copy.status, 201, JSON.stringify(copy.body));
    await cloud.crash();
    await cloud.start();
    user = new Client(cloud.api, user.key);
    const asked = await user.call(`${path}/query`, { json: { statement: 'SELECT n FROM notes' } });
    assert.deepEqual(asked.body.rows, [[1]]);
    const removed = await user.call(path, { method: 'DELETE' });
    assert.equal(removed.status, 200, JSON.stringify(removed.body));
    await assert.rejects(ask(made.body.connection.uri, 'SELECT 1'));
    const back = await user.call(`${path}/undelete`, { method: 'POST' });
    assert.equal(back.status, 200, JSON.stringify(back.body));
    const rows = await user.call(`${path}/query`, { json: { statement: 'SELECT n FROM notes' } });
    assert.deepEqual(rows.body.rows, [[1]]);
    assert.ok(!cloud.output.includes(PASSWORD));
  });
