/** A real server behind the proxy, and clients that try to block others. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { Client } from 'pg';
import { eventually } from '../../testing/eventually.ts';
import { newDatabase } from '../../testing/new-database.ts';
import { testClaim } from '../../testing/own-ground.ts';
import { noPostgresql, postgresqlFixture } from '../../testing/postgresql-fixture.ts';
import { freePort } from '../server-port.ts';
import { ServerProxy } from './server-proxy.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
/** None of the routes that lead past the proxy. */
const HOST = '127.0.0.2';
const LISTENER = 'listener';
const CROWD = 400;
/** The maximum of a listener. */
const UNAUTHENTICATED = 256;
const VERSION_3 = 0x0003_0000;

/** A listener without a server yet, and the port of a server with a database. */
async function withServer(t: TestContext) {
  const fixture = postgresqlFixture();
  const proxy = new ServerProxy({ wanted: () => {}, warn: () => {}, claim: testClaim() });
  const sockets: Socket[] = [];
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    await proxy.close();
    await fixture.close();
  });
  const database = newDatabase({ limits: { connections: 100, statementMs: 10_000 } });
  await fixture.engine.provision(database, SECRET);
  const server = fixture.engine.serverOf(database.accountId)?.engine.server.port ?? 0;
  const port = await freePort(20_000 + (process.pid % 10_000));
  await proxy.open({ name: LISTENER, addresses: [HOST], port, protocol: 'postgresql' });
  const { username, database: name } = database;
  const enter = async () => {
    const client = new Client({ host: HOST, port, user: username, database: name, password: SECRET });
    client.on('error', () => {});
    await client.connect();
    return client;
  };
  const crowd = async (words: Buffer | null) => {
    const come = Array.from({ length: CROWD }, () => connect({ port, host: HOST }));
    sockets.push(...come);
    for (const socket of come) {
      socket.on('error', () => {}).resume();
      if (words !== null) socket.write(words);
    }
    await eventually(async () => (await proxy.figures(LISTENER)).accepted >= CROWD);
    return come;
  };
  return { proxy, server, enter, crowd, database };
}

/** The first message of a PostgreSQL client. */
function startUp(words: Readonly<Record<string, string>>): Buffer {
  const body = Buffer.from(`${Object.entries(words).flat().join('\0')}\0\0`);
  const head = Buffer.alloc(8);
  head.writeInt32BE(head.length + body.length, 0);
  head.writeInt32BE(VERSION_3, 4);
  return Buffer.concat([head, body]);
}

async function answers(client: Client): Promise<unknown> {
  return (await client.query('SELECT 1 AS a')).rows[0]?.a;
}

describe('a server of PostgreSQL behind the proxy', { skip: noPostgresql }, () => {
  test('fifty at once log in to one that sleeps', async (t) => {
    const { proxy, server, enter } = await withServer(t);
    const entering = Array.from({ length: 50 }, enter);
    await eventually(async () => (await proxy.figures(LISTENER)).waiting === 50);
    await proxy.lead(LISTENER, server);
    const clients = await Promise.all(entering);
    assert.deepEqual(new Set(await Promise.all(clients.map(answers))), new Set([1]));
    await Promise.all(clients.map((client) => client.end()));
  });

  test('who has logged in stays, and others log in, among silent connections and half log-ins', async (t) => {
    const { proxy, server, enter, crowd, database } = await withServer(t);
    await proxy.lead(LISTENER, server);
    const before = await enter();
    await crowd(null);
    const among = await enter();
    const half = await crowd(startUp({ user: database.username, database: database.database }));
    const late = await enter();
    for (const client of [before, among, late]) assert.equal(await answers(client), 1);
    const gone = () => half.filter(({ destroyed }) => destroyed).length;
    await eventually(() => gone() >= CROWD - UNAUTHENTICATED);
    // The server ends the others at the end of their time.
    await eventually(() => gone() === CROWD);
    for (const client of [before, among, late]) {
      assert.equal(await answers(client), 1);
      await client.end();
    }
  });

  test('who says nothing is ended as by the server, and may not speak later', async (t) => {
    const { proxy, server, crowd } = await withServer(t);
    await proxy.lead(LISTENER, server);
    const silent = await crowd(null);
    await eventually(() => silent.every(({ destroyed }) => destroyed));
    assert.deepEqual(await proxy.figures(LISTENER), { open: 0, waiting: 0, accepted: CROWD });
  });
});
