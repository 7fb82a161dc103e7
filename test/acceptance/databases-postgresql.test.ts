/** PostgreSQL databases in use by their owners: over the API, and with a PostgreSQL driver. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { Client as Driver } from 'pg';
import { NO_POSTGRESQL } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { GOES_STRAIGHT } from './databases-kit.ts';

const isThere = globSync('build/programs/postgresql-*/usr').length > 0;

interface Connection {
  readonly uri: string;
  readonly port: number;
}

describe('PostgreSQL databases', { skip: isThere ? false : NO_POSTGRESQL }, () => {
  let cloud: CloudProcess;
  let user: Client;
  before(async () => {
    cloud = await CloudProcess.start();
    user = await new Client(cloud.api).newUser();
  });
  after(() => cloud.stop());

  async function make(name: string) {
    const json = { name, engine: 'postgresql' };
    const { status, body } = await user.call('/api/databases', { json });
    assert.equal(status, 201, JSON.stringify(body));
    return body as { database_id: string; version: string; connection: Connection };
  }
  async function connect({ uri }: Connection): Promise<Driver> {
    const driver = new Driver(uri);
    driver.on('error', () => {});
    await driver.connect();
    return driver;
  }
  const startOf = async (driver: Driver) =>
    String((await driver.query('SELECT pg_postmaster_start_time() AS at')).rows[0]?.at);

  test('a database is made, used with the driver, dumped, loaded, and gone with its sessions', async () => {
    const { database_id: id, version, connection } = await make('shop');
    const path = `/api/databases/${id}`;
    assert.match(version, /^\d+\.\d+$/);
    const driver = await connect(connection);
    const engines = await user.call('/api/database-engines');
    const { extensions } = engines.body.find(({ engine }: { engine: string }) => engine === 'postgresql');
    assert.ok(extensions.includes('pgcrypto') && !extensions.includes('dblink'));
    await driver.query('CREATE EXTENSION pgcrypto');
    await assert.rejects(
      driver.query('CREATE EXTENSION dblink'),
      /permission denied to create extension "dblink"/,
    );
    await driver.query('CREATE TABLE orders (id int PRIMARY KEY, what text)');
    await driver.query("INSERT INTO orders VALUES (1, 'tea')");
    const asked = await user.call(`${path}/query`, {
      json: { statement: 'SELECT * FROM orders WHERE id = $1', params: [1] },
    });
    assert.deepEqual(asked.body.rows, [[1, 'tea']]);
    const failed = await user.call(`${path}/query`, { json: { statement: 'DELETE FROM orders' } });
    assert.deepEqual(
      [failed.status, failed.body.code, failed.body.engine_code],
      [400, 'query_failed', '25006'],
    );
    const statements = [
      { statement: 'COPY orders FROM STDIN', wanted: ['0A000', null, /^Use INSERT/] },
      { statement: "SELECT '🐘', '\0'", wanted: ['22P05', 14, /^Remove the character/] },
      { statement: "SELECT '🐘',\n nothing", wanted: ['42703', 14, undefined] },
    ] as const;
    for (const { statement, wanted } of statements) {
      const json = { statement, read_only: false };
      const { status, body } = await user.call(`${path}/query`, { json });
      assert.deepEqual([status, body.engine_code, body.position], [400, wanted[0], wanted[1]]);
      if (wanted[2] !== undefined) assert.match(body.hint, wanted[2]);
    }
    await assert.rejects(driver.query('SELECT 1 / 0'));
    const log = await eventually('the error in the log', async () => {
      const text = await (await user.fetch(`${path}/log`)).text();
      return text.includes('division') ? text : null;
    });
    assert.match(log, /25006 ERROR: .*\n(?:.*\n)*.*22012 ERROR: +division by zero/);
    const short = await user.fetch(`${path}/log?bytes=200`);
    assert.equal(short.headers.get('content-type'), 'text/plain; charset=utf-8');
    assert.match(await short.text(), /22012 ERROR: +division by zero\n$/);
    const tables = await user.call(`${path}/tables`);
    assert.deepEqual(
      tables.body.map(({ name }: { name: string }) => name),
      ['orders'],
    );
    for (const [format, beginning] of [
      ['sql', '--'],
      ['custom', 'PGDMP'],
    ] as const) {
      const dump = await (await user.fetch(`${path}/dump?format=${format}`)).text();
      assert.ok(dump.startsWith(beginning));
    }
    const dump = await (await user.fetch(`${path}/dump`)).blob();
    await driver.query('DROP TABLE orders');
    const body = new FormData();
    body.set('file', dump, 'shop.sql');
    const loaded = await user.call(`${path}/load`, { body });
    assert.equal(loaded.status, 200, JSON.stringify(loaded.body));
    // A load ends sessions, because the data they saw is replaced.
    await assert.rejects(driver.query('SELECT 1'));
    const again = await connect(connection);
    assert.deepEqual((await again.query('SELECT what FROM orders')).rows, [{ what: 'tea' }]);
    assert.equal((await user.call(path, { method: 'DELETE' })).status, 200);
    await assert.rejects(again.query('SELECT 1'));
    await assert.rejects(connect(connection));
  });

  test('a driver that insists on TLS has it, one that does not goes without', async () => {
    const { connection } = await make('encrypted');
    for (const ssl of [{ rejectUnauthorized: false }, false]) {
      const driver = new Driver({ connectionString: connection.uri, ssl });
      await driver.connect();
      const asked = await driver.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()');
      assert.deepEqual(asked.rows, [{ ssl: ssl !== false }]);
      await driver.end();
    }
  });

  test('the server serves on when Cloudlet is killed, and is adopted; a stop ends it, and a start brings it back', async () => {
    const { connection } = await make('kept');
    let driver = await connect(connection);
    await driver.query('CREATE TABLE t AS SELECT 1 AS a');
    const first = await startOf(driver);
    await cloud.crash();
    if (GOES_STRAIGHT) assert.deepEqual((await driver.query('SELECT a FROM t')).rows, [{ a: 1 }]);
    await cloud.start();
    if (!GOES_STRAIGHT)
      driver = await eventually('its listener', () => connect(connection).catch(() => null));
    user = new Client(cloud.api, user.key);
    const { connection: other } = await make('after-kill');
    assert.equal(other.port, connection.port);
    assert.equal(await startOf(driver), first);
    await driver.end();
    await cloud.end();
    await assert.rejects(connect(connection), { code: 'ECONNREFUSED' });
    await cloud.start();
    user = new Client(cloud.api, user.key);
    const back = await eventually('the server', () => connect(connection).catch(() => null));
    assert.deepEqual((await back.query('SELECT a FROM t')).rows, [{ a: 1 }]);
    assert.notEqual(await startOf(back), first);
    await back.end();
  });

  test('a port that is taken is named with who has it, and the server comes once it is free', async () => {
    const { connection } = await make('port');
    await cloud.end();
    const holder = createServer().listen(connection.port, '127.0.0.1');
    await cloud.start();
    user = new Client(cloud.api, user.key);
    const refused = await eventually('a refusal', async () => {
      const answer = await user.call('/api/databases', { json: { name: 'no', engine: 'postgresql' } });
      return answer.status === 503 ? answer.body : null;
    });
    assert.equal(refused.code, 'engine_unavailable');
    assert.match(
      refused.detail,
      new RegExp(`port ${connection.port} .*is in use by .*\\(process ${process.pid}\\)`),
    );
    const status = await new Client(cloud.api, ADMIN_KEY).call('/api/system/status');
    assert.match(JSON.stringify(status.body), /postgresql_port_taken/);
    assert.equal((await user.call('/api/databases', { json: { name: 'file' } })).status, 201);
    await new Promise((resolve) => holder.close(resolve));
    await (await eventually('the server', () => connect(connection).catch(() => null))).end();
  });
});
