/** TLS that drivers verify on this host, where it is optional. */
import assert from 'node:assert/strict';
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { MongoClient } from 'mongodb';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { Client as Driver } from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';

const skipWithout = (program: string, why: string) =>
  globSync(`build/programs/${program}-*/usr`).length > 0 ? false : why;

describe('credentials with TLS on this host', () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  let cloud: CloudProcess;
  let user: Client;
  before(async () => {
    cloud = await CloudProcess.start({ env: { CLOUDLET_MONGODB_SERVER: 'built-in' } });
    user = await new Client(cloud.api).newUser();
  });
  after(async () => {
    await cloud.stop();
    rmSync(folder, { recursive: true });
  });

  async function credentialsOf(engine: string) {
    const { status, body } = await user.call('/api/databases', { json: { name: engine, engine } });
    assert.equal(status, 201, JSON.stringify(body));
    const path = `/api/databases/${body.database_id}/credentials`;
    const usual = await user.call(path);
    assert.deepEqual([usual.body.connection.tls, usual.body.ca], [false, null]);
    return user.call(`${path}?tls=true`);
  }

  test('PostgreSQL: the URI requires TLS and verifies the server', {
    skip: skipWithout('postgresql', NO_POSTGRESQL),
  }, async () => {
    const { body } = await credentialsOf('postgresql');
    const { connection, ca, snippets } = body;
    assert.equal(connection.tls, true);
    assert.ok(snippets.cli.includes('sslmode=verify-full&sslrootcert=ca.pem'));
    const file = join(folder, 'ca.pem');
    writeFileSync(file, ca);
    const driver = new Driver(connection.uri.replace('ca.pem', file));
    await driver.connect();
    const { rows } = await driver.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()');
    assert.deepEqual(rows, [{ ssl: true }]);
    await driver.end();
  });

  test('MySQL: the code verifies the server', { skip: skipWithout('mariadb', NO_MARIADB) }, async () => {
    const { body } = await credentialsOf('mysql');
    const { connection, ca, snippets } = body;
    assert.match(snippets.cli, /--ssl-ca=ca\.pem --ssl-verify-server-cert/);
    assert.match(snippets.node, /ca: readFileSync\('ca\.pem'\)/);
    const driver = await createConnection({ uri: connection.uri, ssl: { ca, verifyIdentity: true } });
    const [rows] = await driver.query<RowDataPacket[]>("SHOW STATUS LIKE 'Ssl_version'");
    assert.match(String(rows[0]?.Value), /^TLSv1\./);
    await driver.end();
  });

  test('MongoDB: the URI requires TLS and verifies the server', async () => {
    const { body } = await credentialsOf('mongodb');
    const { connection, ca, snippets, frameworks } = body;
    assert.equal(connection.tls, true);
    for (const code of [snippets.python, frameworks[0].code])
      assert.match(code, /tls=true&tlsCAFile=ca\.pem/);
    const file = join(folder, 'mongodb.pem');
    writeFileSync(file, ca);
    const driver = new MongoClient(connection.uri.replace('ca.pem', encodeURIComponent(file)));
    assert.equal((await driver.db().command({ ping: 1 })).ok, 1);
    await driver.close();
  });

  test('SQLite says that there is none', async () => {
    const { status, body } = await credentialsOf('sqlite');
    assert.equal(status, 400);
    assert.match(JSON.stringify(body), /this sqlite database does not offer TLS/);
  });
});
