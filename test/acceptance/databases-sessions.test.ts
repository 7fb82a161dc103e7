/** Sessions of PostgreSQL and MySQL: they are metered, and end with their password and their account. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { Client as Postgresql } from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

interface Session {
  readonly query: (sql: string) => Promise<unknown>;
  readonly close: () => void;
}

async function openPostgresql(uri: string): Promise<Session> {
  const driver = new Postgresql(uri);
  driver.on('error', () => {});
  await driver.connect();
  return { query: (sql) => driver.query(sql), close: () => void driver.end().catch(() => {}) };
}

async function openMysql(uri: string): Promise<Session> {
  const driver = await createConnection(uri);
  driver.on('error', () => {});
  return { query: (sql) => driver.query(sql), close: () => driver.destroy() };
}

const CASES = [
  { engine: 'postgresql', programs: 'postgresql', missing: NO_POSTGRESQL, open: openPostgresql },
  { engine: 'mysql', programs: 'mariadb', missing: NO_MARIADB, open: openMysql },
];

let cloud: CloudProcess;
before(async () => {
  cloud = await CloudProcess.start();
});
after(() => cloud.stop());

for (const { engine, programs, missing, open } of CASES) {
  const skip = globSync(`build/programs/${programs}-*/usr`).length > 0 ? false : missing;
  test(`${engine}: sessions end when the password is rotated and when the account is suspended`, {
    skip,
  }, async (t) => {
    const user = await new Client(cloud.api).newUser();
    const { body: account } = await user.call('/api/account');
    const { body: made } = await user.call('/api/databases', { json: { name: 'shop', engine } });
    const path = `/api/databases/${made.database_id}`;
    const opened = async (uri: string) => {
      const session = await open(uri);
      t.after(session.close);
      return session;
    };
    const first = await opened(made.connection.uri);
    await first.query('CREATE TABLE t (a text)');
    for (let i = 0; i < 20; i++) await first.query(`INSERT INTO t VALUES (REPEAT('x${i}', 20000))`);
    await eventually('its size', async () => (await user.call(path)).body.size_bytes > 0);
    const rotated = await user.call(`${path}/credentials/rotate`, { method: 'POST' });
    const { uri } = rotated.body.connection;
    await assert.rejects(first.query('SELECT 1'));
    await assert.rejects(open(made.connection.uri));
    const second = await opened(uri);
    const administer = (verb: string, json: object) =>
      new Client(cloud.api, ADMIN_KEY).call(`/api/admin/accounts/${account.id}/${verb}`, { json });
    assert.equal((await administer('suspend', { reason: 'a test' })).status, 200);
    const isOver = () =>
      second.query('SELECT 1').then(
        () => false,
        () => true,
      );
    await eventually('the end of the session', isOver);
    await assert.rejects(open(uri));
    assert.equal((await administer('resume', {})).status, 200);
    const third = await eventually('a session', () => opened(uri).catch(() => null));
    await third.query('SELECT COUNT(*) FROM t');
  });
}
