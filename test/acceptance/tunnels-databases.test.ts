/** Tunnels to databases: drivers log in through them, but only to databases of their account. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MongoClient } from 'mongodb';
import { createConnection } from 'mysql2/promise';
import { Client as Postgresql } from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { listenThrough, openTunnel, refusedTunnel } from './tunnel-kit.ts';

interface Made {
  readonly database_id: string;
  readonly connection: { readonly uri: string };
}

const cloud = await CloudProcess.start({ env: { CLOUDLET_DATABASE_IDLE_SECONDS: '2' } });
const anyone = await CheckedClient.open(cloud.api);
interface Entry {
  readonly engine: string;
  readonly available: boolean;
}
const listed: Entry[] = await anyone.expect(200, '/api/database-engines');
const engines = new Set(listed.filter(({ available }) => available).map(({ engine }) => engine));
let owner: CheckedClient;
let key = '';
let stranger: CheckedClient;
let strangersKey = '';

before(async () => {
  ({ api_key: key } = await anyone.register());
  ({ api_key: strangersKey } = await anyone.register());
  [owner, stranger] = [anyone.as(key), anyone.as(strangersKey)];
});
after(() => cloud.stop());

let made = 0;
const newDatabase = (user: CheckedClient, engine: string): Promise<Made> =>
  user.expect(201, '/api/databases', { json: { name: `d${++made}`, engine } });
const pathOf = ({ database_id }: Made) => `/api/databases/${database_id}/tunnel`;
const refused = (database: Made, by = key) => refusedTunnel(cloud.api, { path: pathOf(database), key: by });

/** The database's address, with the near end of tunnels to it. */
async function through(database: Made, leadingTo = database, by = key) {
  const { port, close } = await listenThrough(cloud.api, { path: pathOf(leadingTo), key: by });
  const uri = new URL(database.connection.uri);
  uri.host = `127.0.0.1:${port}`;
  return { uri: uri.href, close };
}

async function egressOf({ database_id }: Made): Promise<number> {
  const { items } = await owner.expect(200, '/api/billing/usage');
  const own = items.find((item: { meter: string; resource_id: string }) => {
    return item.meter === 'egress' && item.resource_id === database_id;
  });
  return own?.quantity ?? 0;
}

test('PostgreSQL: a driver comes in, a server that sleeps wakes, what it sends is counted', {
  skip: engines.has('postgresql') ? false : NO_POSTGRESQL,
}, async () => {
  const database = await newDatabase(owner, 'postgresql');
  await new Promise((resolve) => setTimeout(resolve, 4000));
  const { uri, close } = await through(database);
  const client = new Postgresql({ connectionString: uri });
  await client.connect();
  const { rows } = await client.query("SELECT repeat('x', 3000000) AS text");
  assert.equal(rows[0].text.length, 3_000_000);
  await client.end();
  await eventually('the egress', async () => (await egressOf(database)) > 0.0025);
  const wrong = new Postgresql({ connectionString: uri.replace(/:[^:@/]+@/, ':wrong@') });
  await assert.rejects(wrong.connect(), /password authentication failed/);
  close();
});

test('PostgreSQL: a tunnel of one account is no way to a database of another', {
  skip: engines.has('postgresql') ? false : NO_POSTGRESQL,
}, async () => {
  const [own, theirs] = [await newDatabase(owner, 'postgresql'), await newDatabase(stranger, 'postgresql')];
  assert.deepEqual(await refused(theirs), [404, 'database_not_found']);
  // The victim's name and password are known, but do not work through the attacker's own tunnel.
  const { uri, close } = await through(theirs, own);
  await assert.rejects(new Postgresql({ connectionString: uri }).connect());
  close();
});

test('MariaDB: a driver comes in', { skip: engines.has('mysql') ? false : NO_MARIADB }, async () => {
  const { uri, close } = await through(await newDatabase(owner, 'mysql'));
  const connection = await createConnection(uri);
  const [rows] = await connection.query('SELECT 6 * 7 AS answer');
  assert.deepEqual(rows, [{ answer: 42 }]);
  await connection.end();
  close();
});

test('MongoDB: a driver comes in, to databases of its own account only', async () => {
  const [own, theirs] = [await newDatabase(owner, 'mongodb'), await newDatabase(stranger, 'mongodb')];
  const { uri, close } = await through(own);
  const client = await MongoClient.connect(uri);
  await client.db().collection('t').insertOne({ a: 1 });
  assert.equal(await client.db().collection('t').countDocuments(), 1);
  await client.close();
  close();
  const foreign = await through(theirs, own);
  await assert.rejects(MongoClient.connect(foreign.uri), /another account|[Aa]uthentication failed/);
  foreign.close();
});

test('SQLite has no tunnel, and says what there is instead', async () => {
  assert.deepEqual(await refused(await newDatabase(owner, 'sqlite')), [409, 'no_tunnel']);
});

test('a key needs the scope; the tunnel ends with its key, and with its database', async () => {
  const database = await newDatabase(owner, 'mongodb');
  const newKey = async (scope: string): Promise<{ id: string; api_key: string }> =>
    owner.expect(201, '/api/account/access-keys', { json: { name: scope, scopes: [scope] } });
  const writer = await newKey('databases:write');
  assert.deepEqual(await refused(database, writer.api_key), [403, 'scope_required']);
  assert.deepEqual(await refused(database, strangersKey), [404, 'database_not_found']);
  const { id, api_key } = await newKey('databases:connect');
  const [first, second] = [
    await openTunnel(cloud.api, { path: pathOf(database), key: api_key }),
    await openTunnel(cloud.api, { path: pathOf(database), key }),
  ];
  const began = performance.now();
  await owner.expect(200, `/api/account/access-keys/${id}`, { method: 'DELETE' });
  await eventually('the end of the first', () => first.code === 1008);
  assert.ok(performance.now() - began < 3000);
  assert.equal(second.code, 0);
  await owner.expect(200, `/api/databases/${database.database_id}`, { method: 'DELETE' });
  await eventually('the end of the second', () => second.code !== 0);
  assert.deepEqual(await refused(database), [404, 'database_not_found']);
});

test('the tunnels of a suspended account end, and no new one opens', async () => {
  const { api_key } = await anyone.register();
  const suspended = anyone.as(api_key);
  const { id } = await suspended.expect(200, '/api/account');
  const path = pathOf(await newDatabase(suspended, 'mongodb'));
  const [theirs, own] = [
    await openTunnel(cloud.api, { path, key: api_key }),
    await openTunnel(cloud.api, { path: pathOf(await newDatabase(owner, 'mongodb')), key }),
  ];
  const began = performance.now();
  await anyone.as(ADMIN_KEY).expect(200, `/api/admin/accounts/${id}/suspend`, {
    json: { reason: 'unpaid' },
  });
  await eventually('the end of the tunnel', () => theirs.code !== 0);
  assert.ok(performance.now() - began < 3000);
  assert.deepEqual(await refusedTunnel(cloud.api, { path, key: api_key }), [403, 'account_suspended']);
  assert.equal(own.code, 0);
  own.socket.terminate();
});

test('an account has a bounded number of tunnels, and others are not in its way', async () => {
  const [own, theirs] = [await newDatabase(owner, 'mongodb'), await newDatabase(stranger, 'mongodb')];
  const open = () => openTunnel(cloud.api, { path: pathOf(own), key });
  const tunnels = await Promise.all(Array.from({ length: 100 }, open));
  assert.deepEqual(await refused(own), [503, 'overloaded']);
  const other = await openTunnel(cloud.api, { path: pathOf(theirs), key: strangersKey });
  for (const { socket } of [...tunnels, other]) socket.terminate();
  const opened = await eventually('a free place', () => open().catch(() => null));
  opened.socket.terminate();
});
