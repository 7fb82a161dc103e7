/** Databases and published ports of a cluster, reached by drivers at a front node. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { globSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { checkServerIdentity } from 'node:tls';
import { MongoClient } from 'mongodb';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { Client as Driver } from 'pg';
import { NO_MARIADB } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import type { CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { eventually } from '../harness/waiting.ts';
import { cannotRunGuests, newVm } from './vms-kit.ts';

/** Addresses of the nodes for databases, which are in the host's certificate; and one of a client. */
const HOST = '127.0.0.21';
const FRONT = '127.0.0.22';
const CLIENT = '127.0.0.33';
/** Resolves to all nodes; used in connection strings. */
const NAME = 'databases.example.org';
const PUBLISHED = '127.0.0.23';
const ECHO = 9000;
const GUEST = `#!/bin/sh
nc -ll -p ${ECHO} -e cat &
`;

const noMysql = globSync('build/programs/mariadb-*/usr').length > 0 ? false : NO_MARIADB;

interface Credentials {
  readonly database_id: string;
  readonly username: string;
  readonly password: string;
  readonly database: string;
  readonly port: number;
  readonly ca: string;
}

describe('ports at a front node', { skip: noCluster }, () => {
  let cluster: Cluster;
  let host: CloudProcess;
  let owner: CheckedClient;
  let key: string;
  const made = new Map<string, Credentials>();
  before(async () => {
    cluster = await Cluster.start(1, {
      CLOUDLET_DATABASE_HOST: HOST,
      CLOUDLET_PUBLIC_DATABASE_HOST: NAME,
      CLOUDLET_MONGODB_SERVER: 'built-in',
    });
    [host] = cluster.nodes as [CloudProcess];
    const front = await cluster.add({
      CLOUDLET_DATABASE_HOST: FRONT,
      CLOUDLET_PUBLISHED_HOST: PUBLISHED,
    });
    const anyone = await CheckedClient.open(front.api);
    ({ api_key: key } = await anyone.register());
    owner = anyone.as(key);
  });
  after(() => cluster?.stop());

  /** For a new database, once it is ready. */
  async function credentialsOf(engine: string): Promise<Credentials> {
    const { database_id: id } = await owner.expect(201, '/api/databases', { json: { name: engine, engine } });
    const { connection, ca } = await owner.expect(200, `/api/databases/${id}/credentials`);
    const credentials = { ...connection, ca, database_id: id };
    made.set(engine, credentials);
    return credentials;
  }

  const postgresql = ({ username: user, password, database, port, ca }: Credentials, at = FRONT) =>
    new Driver({ user, password, database, port, host: at, ssl: { ca, checkServerIdentity: ofHost } });
  const mysql = ({ username: user, password, database, port, ca }: Credentials) =>
    createConnection({ user, password, database, port, host: FRONT, ssl: { ca, verifyIdentity: false } });

  test('PostgreSQL', async () => {
    const credentials = await credentialsOf('postgresql');
    const driver = postgresql(credentials);
    await driver.connect();
    await driver.query("CREATE TABLE notes AS SELECT 'by the front' AS text");
    const { rows } = await driver.query('SELECT repeat(text, 100000) AS text FROM notes');
    assert.equal(rows[0].text.length, 1_200_000);
    await driver.end();
    const straight = postgresql(credentials, HOST);
    await straight.connect();
    assert.deepEqual((await straight.query('SELECT text FROM notes')).rows, [{ text: 'by the front' }]);
    await straight.end();
    const wrong = postgresql({ ...credentials, password: 'wrong' });
    await assert.rejects(wrong.connect(), { code: '28P01' });
  });

  test('connection strings name all nodes, whichever node is asked', async () => {
    const { database_id: id } = made.get('postgresql') as Credentials;
    for (const node of cluster.nodes) {
      const anyone = await CheckedClient.open(node.api);
      const { connection } = await anyone.as(key).expect(200, `/api/databases/${id}/credentials`);
      assert.equal(connection.host, NAME);
      assert.match(connection.uri, new RegExp(`@${NAME}:${connection.port}/`));
    }
  });

  test('MySQL', { skip: noMysql }, async () => {
    const credentials = await credentialsOf('mysql');
    const driver = await mysql(credentials);
    const [rows] = await driver.query<RowDataPacket[]>("SHOW STATUS LIKE 'Ssl_version'");
    assert.match(String(rows[0]?.Value), /^TLSv1\./);
    await driver.end();
  });

  test('MongoDB, which is told who the client is', async () => {
    const { username, password, database, port, ca } = await credentialsOf('mongodb');
    const tlsCAFile = join(host.dataDir, 'given-ca.pem');
    writeFileSync(tlsCAFile, ca);
    const driver = new MongoClient(`mongodb://${FRONT}:${port}/${database}?authSource=${database}`, {
      auth: { username, password },
      directConnection: true,
      tls: true,
      tlsCAFile,
      checkServerIdentity: ofHost,
      localAddress: CLIENT,
    });
    const { insertedId } = await driver.db().collection('notes').insertOne({ text: 'by the front' });
    assert.equal((await driver.db().collection('notes').findOne({ _id: insertedId }))?.text, 'by the front');
    const { you } = await driver.db('admin').command({ whatsmyuri: 1 });
    assert.match(you, new RegExp(`^${CLIENT}:`));
    await driver.close();
  });

  test('a published port of a machine', { skip: cannotRunGuests() }, async () => {
    const vm = await newVm(owner, { user_data: GUEST });
    await owner.expect(200, `${vm}/start`, { method: 'POST' });
    const { public_port: port } = await owner.expect(201, `${vm}/ports`, { json: { port: ECHO } });
    const visitor = connect({ host: PUBLISHED, port });
    await once(visitor, 'connect');
    visitor.destroy();
    await eventually('an echo by the front', async () => (await echoAt(PUBLISHED, port)) === 'hello');
    await owner.expect(200, `${vm}/stop?mode=force`, { method: 'POST' });
  });

  test('a host that stands still is not waited for', async (t) => {
    const path = `/api/databases/${made.get('postgresql')?.database_id}`;
    const call = () => owner.call(`${path}/query`, { json: { statement: 'SELECT 1' } });
    assert.equal((await call()).status, 200);
    process.kill(host.pid, 'SIGSTOP');
    t.after(() => host.hasEnded || process.kill(host.pid, 'SIGCONT'));
    const began = performance.now();
    const waiting = [call(), owner.call(`${path}/tables`)];
    const [asked, read] = await Promise.all(waiting);
    t.diagnostic(`answered ${Math.round(performance.now() - began)} ms after the stop`);
    assert.deepEqual([asked?.status, asked?.body.code], [503, 'operation_interrupted']);
    assert.match(asked?.body.hint, /same Idempotency-Key/);
    assert.deepEqual([read?.status, read?.body.code], [503, 'host_unreachable']);
    assert.equal((await call()).body.code, 'host_unreachable');
    await assert.rejects(postgresql(made.get('postgresql') as Credentials).connect());
    process.kill(host.pid, 'SIGCONT');
    // On a busy host it may have been declared lost by then.
    await eventually('the host behind the front', async () => {
      if (host.hasEnded) await host.start();
      return (await call()).status === 200;
    });
  });

  test('while the host is away log-ins are refused in the words of their protocol', async () => {
    const credentials = made.get('postgresql') as Credentials;
    const there = postgresql(credentials);
    await there.connect();
    const ended = new Promise((resolve) => there.once('error', resolve));
    await host.crash();
    await ended;
    const { username: user, password, database, port } = credentials;
    const plain = new Driver({ user, password, database, port, host: FRONT });
    await assert.rejects(plain.connect(), /does not answer; try again/);
    if (made.has('mysql')) await assert.rejects(mysql(made.get('mysql') as Credentials), /does not answer/);
    await host.start();
    await eventually('the host behind the front', async () => {
      const driver = postgresql(credentials);
      return driver.connect().then(
        () => driver.end().then(() => true),
        () => false,
      );
    });
  });
});

/** The certificate is the host's: valid for the shared name of the nodes, and for its own address. */
const ofHost: typeof checkServerIdentity = (_, certificate) =>
  checkServerIdentity(NAME, certificate) ?? checkServerIdentity(HOST, certificate);

function echoAt(host: string, port: number): Promise<string> {
  const socket = connect({ host, port });
  socket.end('hello');
  return socket.toArray().then(
    (parts) => Buffer.concat(parts).toString(),
    () => '',
  );
}
