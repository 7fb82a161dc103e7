import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createClient, type Client as Driver, LibsqlError } from '@libsql/client';
import { eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/libsql';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';

let cloud: CloudProcess;
let user: Client;
let id: string;
let driver: Driver;
before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_DATABASE_STATEMENT_SECONDS: '2' } });
  user = await new Client(cloud.api).newUser();
  const made = await newDatabase('shop');
  id = made.database_id;
  driver = connect(made.connection);
});
after(async () => {
  driver?.close();
  await cloud.stop();
});

interface Connection {
  readonly uri: string;
  readonly password: string;
}

async function newDatabase(name: string): Promise<{ database_id: string; connection: Connection }> {
  const { status, body } = await user.call('/api/databases', { json: { name } });
  assert.equal(status, 201, JSON.stringify(body));
  return body;
}

function connect({ uri, password }: Connection, more: { intMode?: 'bigint' } = {}): Driver {
  const { origin, pathname } = new URL(uri);
  return createClient({ url: origin + pathname, authToken: password, ...more });
}

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: an answer read from outside
  readonly body: any;
  // biome-ignore lint/suspicious/noExplicitAny: an answer read from outside
  readonly lines: readonly any[];
}

/** A request to the whole database, without the driver: `path` is `v3/pipeline` or similar. */
async function post(path: string, body: unknown, token: string): Promise<Answer> {
  const answer = await fetch(`${cloud.data}/db/${id}/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  // biome-ignore lint/suspicious/noExplicitAny: an answer read from outside
  const lines: any[] = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  return { status: answer.status, lines, body: lines[0] };
}

async function refused(code: string, work: () => Promise<unknown>): Promise<LibsqlError> {
  try {
    await work();
  } catch (error) {
    assert.ok(error instanceof LibsqlError, String(error));
    assert.equal(error.code, code, error.message);
    return error;
  }
  throw new Error(`nothing was refused with ${code}`);
}

const passwordOf = async (databaseId: string): Promise<Connection> => {
  const { body } = await user.call(`/api/databases/${databaseId}/credentials`);
  return body.connection;
};

test('values of every type come back as they went in', async () => {
  await driver.execute('CREATE TABLE things (id INTEGER PRIMARY KEY, any)');
  const bytes = Uint8Array.from([0, 255, 7]);
  for (const value of ['é"\\\n', 1.5, -7, null, bytes, 2n ** 40n]) {
    const { rowsAffected } = await driver.execute({
      sql: 'INSERT INTO things(any) VALUES (?)',
      args: [value],
    });
    assert.equal(rowsAffected, 1);
  }
  const exact = connect(await passwordOf(id), { intMode: 'bigint' });
  const { rows, columns } = await exact.execute('SELECT any FROM things ORDER BY id');
  assert.deepEqual(columns, ['any']);
  assert.deepEqual(
    rows.map(({ any }) => (any instanceof ArrayBuffer ? new Uint8Array(any) : any)),
    ['é"\\\n', 1.5, -7, null, bytes, 2n ** 40n],
  );
  const largest = await exact.execute({ sql: 'SELECT :n AS n', args: { n: 2n ** 63n - 1n } });
  assert.equal(largest.rows[0]?.n, 2n ** 63n - 1n);
});

test('arguments go by name and by position', async () => {
  const named = await driver.execute({
    sql: 'SELECT :a AS a, @b AS b, $c AS c',
    args: { a: 'x', b: 'y', c: 'z' },
  });
  assert.deepEqual({ ...named.rows[0] }, { a: 'x', b: 'y', c: 'z' });
  const placed = await driver.execute({ sql: 'SELECT ?2 AS a, ?1 AS b, ? AS c', args: ['1', '2', '3'] });
  assert.deepEqual({ ...placed.rows[0] }, { a: '2', b: '1', c: '3' });
  await refused('ARGS_INVALID', () => driver.execute({ sql: 'SELECT ?', args: [] }));
  await refused('ARGS_INVALID', () => driver.execute({ sql: 'SELECT 1', args: ['one too many'] }));
});

test('a batch is undone as a whole when one of its statements fails', async () => {
  await driver.execute('CREATE TABLE whole (id INTEGER PRIMARY KEY)');
  const batch = ['INSERT INTO whole VALUES (1)', 'INSERT INTO whole VALUES (1)'];
  await refused('SQLITE_CONSTRAINT', () => driver.batch(batch, 'write'));
  assert.equal((await driver.execute('SELECT * FROM whole')).rows.length, 0);
  const results = await driver.batch(['SELECT 1 AS a', 'SELECT 2 AS a'], 'read');
  assert.deepEqual(
    results.map(({ rows }) => rows[0]?.a),
    [1, 2],
  );
  await driver.batch(['INSERT INTO whole VALUES (2)'], 'deferred');
  assert.equal((await driver.execute('SELECT * FROM whole')).rows.length, 1);
});

test('a transaction sees its own writes, and nobody else does before its commit', async () => {
  await driver.execute('CREATE TABLE accounts (name TEXT PRIMARY KEY, amount INTEGER)');
  await driver.execute("INSERT INTO accounts VALUES ('a', 10)");
  const sum = async (who: Pick<Driver, 'execute'>) =>
    (await who.execute('SELECT sum(amount) AS sum FROM accounts')).rows[0]?.sum;
  const transaction = await driver.transaction('write');
  await transaction.execute("INSERT INTO accounts VALUES ('b', 5)");
  assert.equal(await sum(transaction), 15);
  assert.equal(await sum(driver), 10);
  await transaction.rollback();
  assert.equal(await sum(driver), 10);
  const another = await driver.transaction('write');
  await another.execute("INSERT INTO accounts VALUES ('b', 5)");
  await another.commit();
  assert.equal(await sum(driver), 15);
});

test('a transaction that only reads writes nothing', async () => {
  await driver.execute('CREATE TABLE read_only (a)');
  const write = 'INSERT INTO read_only VALUES (1)';
  await refused('SQLITE_READONLY', () => driver.batch(['SELECT 1', write], 'read'));
  const transaction = await driver.transaction('read');
  await refused('SQLITE_READONLY', () => transaction.execute(write));
  await refused('SQLITE_READONLY', () => transaction.execute(`WITH x AS (SELECT 1) ${write}`));
  assert.deepEqual((await transaction.execute('SELECT * FROM read_only')).rows, []);
  await transaction.commit();
  await driver.execute(write);
});

test('whoever writes meanwhile waits for the transaction that writes', async () => {
  await driver.execute('CREATE TABLE waiting (id INTEGER PRIMARY KEY, who TEXT)');
  const transaction = await driver.transaction('write');
  await transaction.execute("INSERT INTO waiting(who) VALUES ('first')");
  const others = [2, 3, 4].map(() => driver.execute("INSERT INTO waiting(who) VALUES ('other')"));
  await transaction.execute("INSERT INTO waiting(who) VALUES ('second')");
  await transaction.commit();
  await Promise.all(others);
  const { rows } = await driver.execute('SELECT who FROM waiting ORDER BY id');
  assert.deepEqual(
    rows.map(({ who }) => who),
    ['first', 'second', 'other', 'other', 'other'],
  );
});

test('many statements at once, a trigger among them', async () => {
  await driver.executeMultiple(`
    CREATE TABLE noted (id INTEGER PRIMARY KEY); CREATE TABLE notes (id INTEGER);
    CREATE TRIGGER note AFTER INSERT ON noted BEGIN
      INSERT INTO notes VALUES (new.id); INSERT INTO notes VALUES (-new.id);
    END;
    -- ; and this is no statement
    INSERT INTO noted VALUES (1), (2);`);
  assert.equal((await driver.execute('SELECT * FROM notes')).rows.length, 4);
  await refused('SQL_MANY_STATEMENTS', () => driver.execute('SELECT 1; SELECT 2'));
});

test('a migration runs with foreign keys off, and leaves them on', async () => {
  await driver.executeMultiple(`CREATE TABLE parents (id INTEGER PRIMARY KEY);
    CREATE TABLE children (parent INTEGER REFERENCES parents(id));
    INSERT INTO parents VALUES (1); INSERT INTO children VALUES (1);`);
  await driver.migrate([
    'DROP TABLE parents',
    'CREATE TABLE parents (id INTEGER PRIMARY KEY, name TEXT)',
    'INSERT INTO parents(id) VALUES (1)',
  ]);
  await refused('SQLITE_CONSTRAINT', () => driver.execute('INSERT INTO children VALUES (2)'));
});

test('BEGIN and COMMIT stand in one call each, for drivers that keep a stream', async () => {
  const { password } = await passwordOf(id);
  const execute = (statement: string) => ({ type: 'execute', stmt: { sql: statement } });
  await driver.execute('CREATE TABLE kept (id INTEGER)');
  const send = async (baton: string | null, requests: object[], version = 'v3') => {
    return post(`${version}/pipeline`, { baton, requests }, password);
  };
  const { body: begun } = await send(null, [execute('BEGIN')]);
  const { body: next } = await send(begun.baton, [
    execute('INSERT INTO kept VALUES (1)'),
    { type: 'get_autocommit' },
  ]);
  assert.deepEqual(next.results[1].response, { type: 'get_autocommit', is_autocommit: false });
  assert.notEqual(next.baton, begun.baton);
  const again = await send(begun.baton, []);
  assert.deepEqual([again.status, again.body.code], [400, 'BATON_INVALID']);
  const ended = await send(next.baton, [execute('COMMIT'), { type: 'close' }], 'v2');
  assert.equal(ended.body.baton, null);
  assert.equal((await driver.execute('SELECT * FROM kept')).rows.length, 1);
});

test('a cursor gives rows one by one', async () => {
  const { password } = await passwordOf(id);
  const count =
    'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i FROM n';
  const steps = [{ stmt: { sql: count } }];
  const { lines } = await post('v3/cursor', { baton: null, batch: { steps } }, password);
  assert.equal(typeof lines[0].baton, 'string');
  assert.deepEqual(lines[1], { type: 'step_begin', step: 0, cols: [{ name: 'i', decltype: null }] });
  assert.equal(lines.length, 20_003);
  assert.deepEqual(lines[20_001].row, [{ type: 'integer', value: '20000' }]);
  assert.equal(lines.at(-1).type, 'step_end');
});

test('drizzle reads, writes and rolls back', async () => {
  const users = sqliteTable('users', { id: integer('id').primaryKey(), name: text('name').notNull() });
  const db = drizzle(driver);
  await db.run(sql`CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL)`);
  const [ann] = await db.insert(users).values({ name: 'Ann' }).returning();
  assert.deepEqual(ann, { id: 1, name: 'Ann' });
  await assert.rejects(
    db.transaction(async (tx) => {
      await tx.update(users).set({ name: 'Eve' }).where(eq(users.id, 1));
      throw new Error('on second thought');
    }),
    /on second thought/,
  );
  await db.transaction(async (tx) => tx.insert(users).values({ name: 'Bob' }));
  assert.deepEqual(await db.select().from(users), [
    { id: 1, name: 'Ann' },
    { id: 2, name: 'Bob' },
  ]);
});

test('the address works with and without its last slash, and with two', async () => {
  const { uri, password } = await passwordOf(id);
  const { origin } = new URL(uri);
  for (const path of [`/db/${id}`, `/db/${id}/`, `/db/${id}//`]) {
    const one = createClient({ url: origin + path, authToken: password });
    assert.equal((await one.execute('SELECT 1 AS a')).rows[0]?.a, 1, path);
  }
  for (const path of [`/db/${id}/v2`, `/db/${id}//v3`, '/db/v3', `/db/${id}/v3-protobuf`])
    assert.equal((await fetch(origin + path)).status, 200, path);
  assert.equal((await fetch(`${origin}/db/${id}/v4`)).status, 404);
});

test('a wrong password, a password of another database and no database are told alike', async () => {
  const { uri, password } = await passwordOf(id);
  const other = await newDatabase('other');
  const { origin } = new URL(uri);
  const nobody = `db-${'0'.repeat(26)}`;
  for (const [path, authToken] of [
    [`/db/${id}/`, 'wrong'],
    [`/db/${id}/`, other.connection.password],
    [`/db/${other.database_id}/`, password],
    [`/db/${nobody}/`, password],
    ['/db/', 'wrong'],
    [`/db/${id}/`, ''],
  ]) {
    const one = createClient({ url: `${origin}${path}`, authToken: authToken ?? '' });
    const { message } = await refused('invalid_database_password', () => one.execute('SELECT 1'));
    assert.match(message, /password/);
  }
});

test('a rotated password ends streams of the old one at once', async () => {
  const { database_id, connection } = await newDatabase('rotating');
  const old = connect(connection);
  await old.execute('CREATE TABLE t (a)');
  const transaction = await old.transaction('write');
  await transaction.execute('INSERT INTO t VALUES (1)');
  const rotated = await user.call(`/api/databases/${database_id}/credentials/rotate`, { method: 'POST' });
  assert.equal(rotated.status, 200);
  await refused('invalid_database_password', () => old.execute('SELECT 1'));
  await refused('invalid_database_password', () => transaction.commit());
  const fresh = connect(rotated.body.connection);
  assert.equal((await fresh.execute('SELECT * FROM t')).rows.length, 0);
});

test('a statement that runs for ever is ended, and told so', async () => {
  const endless = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n';
  const { message } = await refused('query_timeout', () => driver.execute(endless));
  assert.match(message, /timed out/);
  const { status, body } = await user.call(`/api/databases/${id}/query`, { json: { statement: endless } });
  assert.deepEqual([status, body.code], [408, 'query_timeout']);
  assert.equal((await driver.execute('SELECT 1 AS a')).rows[0]?.a, 1);
});

test('what the driver does not know of is refused in words', async () => {
  await refused('SQLITE_ERROR', () => driver.execute('SLECT 1'));
  await refused('SQLITE_AUTH', () => driver.execute("ATTACH 'x' AS x"));
  await refused('SQLITE_AUTH', () => driver.executeMultiple("SELECT 1; ATTACH 'x' AS x"));
  await refused('SQL_NO_STATEMENT', () => driver.execute('-- nothing'));
  assert.throws(() => driver.sync(), /not supported/);
});

test('a page of another site may use a database whose password it has', async () => {
  const { origin } = new URL((await passwordOf(id)).uri);
  const asked = await fetch(`${origin}/db/${id}/v2/pipeline`, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://shop.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type',
    },
  });
  assert.equal(asked.status, 204);
  assert.equal(asked.headers.get('access-control-allow-origin'), '*');
  assert.match(asked.headers.get('access-control-allow-methods') ?? '', /POST/);
  assert.match(asked.headers.get('access-control-allow-headers') ?? '', /Authorization/);
});
