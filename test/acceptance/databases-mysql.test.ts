/** MySQL databases in use by their owners: over the API, and with a MySQL driver. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { createConnection, type Connection as Driver, type RowDataPacket } from 'mysql2/promise';
import { NO_MARIADB } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { GOES_STRAIGHT } from './databases-kit.ts';

const HOST = 'SELECT host AS host FROM information_schema.processlist WHERE id = CONNECTION_ID()';
const isThere = globSync('build/programs/mariadb-*/usr').length > 0;

describe('MySQL databases', { skip: isThere ? false : NO_MARIADB }, () => {
  let cloud: CloudProcess;
  let user: Client;
  before(async () => {
    cloud = await CloudProcess.start();
    user = await new Client(cloud.api).newUser();
  });
  after(() => cloud.stop());

  async function connect(uri: string): Promise<Driver> {
    const driver = await createConnection(uri);
    driver.on('error', () => {});
    return driver;
  }
  async function expect(status: number, path: string, more?: Parameters<Client['call']>[1]) {
    const answer = await user.call(path, more);
    assert.equal(answer.status, status, JSON.stringify(answer.body));
    return answer.body;
  }
  const rowsOf = async (driver: Driver, sql: string) => (await driver.query<RowDataPacket[]>(sql))[0];

  test('a database is made, used with the driver, dumped, loaded, copied, and gone with its sessions', async () => {
    const json = { name: 'shop', engine: 'mysql' };
    const made = await expect(201, '/api/databases', { json });
    const path = `/api/databases/${made.database_id}`;
    assert.match(made.version, /^\d+\.\d+\.\d+-MariaDB$/);
    const driver = await connect(made.connection.uri);
    await driver.query('CREATE TABLE orders (id int PRIMARY KEY, what text)');
    await driver.query("INSERT INTO orders VALUES (1, 'tea')");
    const asked = await expect(200, `${path}/query`, {
      json: { statement: 'SELECT * FROM orders WHERE id = ?', params: [1] },
    });
    assert.deepEqual(asked.rows, [[1, 'tea']]);
    const failed = await user.call(`${path}/query`, { json: { statement: 'DELETE FROM orders' } });
    assert.deepEqual([failed.status, failed.body.code], [400, 'query_failed']);
    const wrong = { json: { statement: "SELECT '🐘',\n what FROMM orders WHERE 1" } };
    assert.equal((await expect(400, `${path}/query`, wrong)).position, 25);
    await assert.rejects(connect(made.connection.uri.replace(/:[^:@]*@/, ':wrong@')), { errno: 1045 });
    await driver.query("SELECT SLEEP(2.5), 'slowly'");
    await eventually('the log', async () => {
      const log = await (await user.fetch(`${path}/log`)).text();
      return log.includes('Access denied for user') && /SLOW: .* SELECT SLEEP\(2\.5\), 'slowly'\n/.test(log);
    });
    const tables = await expect(200, `${path}/tables`);
    assert.deepEqual(
      tables.map(({ name }: { name: string }) => name),
      ['orders'],
    );
    const dump = await (await user.fetch(`${path}/dump`)).blob();
    await driver.query('DROP TABLE orders');
    const body = new FormData();
    body.set('file', dump, 'shop.sql');
    await expect(200, `${path}/load`, { body });
    // A load ends sessions, because the data they saw is replaced.
    await assert.rejects(driver.query('SELECT 1'));
    const again = await connect(made.connection.uri);
    assert.deepEqual(await rowsOf(again, 'SELECT what FROM orders'), [{ what: 'tea' }]);
    const copy = await expect(201, '/api/databases', {
      json: { name: 'copy', engine: 'mysql', from: { database_id: made.database_id } },
    });
    const other = await connect(copy.connection.uri);
    assert.deepEqual(await rowsOf(other, 'SELECT what FROM orders'), [{ what: 'tea' }]);
    other.destroy();
    await user.call(path, { method: 'DELETE' });
    await assert.rejects(again.query('SELECT 1'));
    // Locked: it can be undeleted for a while.
    await assert.rejects(connect(made.connection.uri), { errno: 4151 });
  });

  test('a driver that insists on TLS has it, one that does not goes without', async () => {
    const json = { name: 'encrypted', engine: 'mysql' };
    const { connection } = await expect(201, '/api/databases', { json });
    for (const [more, version] of [
      [{ ssl: { rejectUnauthorized: false } }, /^TLSv1\.[23]$/],
      [{}, /^$/],
    ] as const) {
      const driver = await createConnection({ uri: connection.uri, ...more });
      const [row] = await rowsOf(driver, "SHOW STATUS LIKE 'Ssl_version'");
      assert.match(String(row?.Value), version);
      await driver.end();
    }
  });

  test('its server serves on when Cloudlet is killed, and is there again after a proper stop', async () => {
    const json = { name: 'kept', engine: 'mysql' };
    const { connection } = await expect(201, '/api/databases', { json });
    // A connection opened while the direct route was being set up uses it.
    let driver = await eventually('a session past Cloudlet', async () => {
      const session = await connect(connection.uri);
      const [{ host }] = (await rowsOf(session, HOST)) as [RowDataPacket];
      if (!GOES_STRAIGHT || String(host).startsWith('127.0.0.1:')) return session;
      session.destroy();
    });
    await driver.query('CREATE TABLE t AS SELECT 1 AS a');
    const [first] = await rowsOf(driver, 'SELECT CONNECTION_ID() AS session');
    await cloud.crash();
    if (GOES_STRAIGHT) assert.deepEqual(await rowsOf(driver, 'SELECT a FROM t'), [{ a: 1 }]);
    await cloud.start();
    if (!GOES_STRAIGHT)
      driver = await eventually('its listener', () => connect(connection.uri).catch(() => null));
    user = new Client(cloud.api, user.key);
    await expect(201, '/api/databases', { json: { name: 'after-kill', engine: 'mysql' } });
    // The same session continues if it does not go through Cloudlet: the server is the same.
    const [now] = await rowsOf(driver, 'SELECT CONNECTION_ID() AS session');
    if (GOES_STRAIGHT) assert.deepEqual(now, first);
    await cloud.end();
    await assert.rejects(connect(connection.uri), { code: 'ECONNREFUSED' });
    await cloud.start();
    user = new Client(cloud.api, user.key);
    const back = await eventually('the server', () => connect(connection.uri).catch(() => null));
    assert.deepEqual(await rowsOf(back, 'SELECT a FROM t'), [{ a: 1 }]);
    back.destroy();
    driver.destroy();
  });
});
