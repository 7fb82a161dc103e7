import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { migrate, renderSchema } from './migrate.ts';
import { type Migration, migrations } from './migrations/migrations.ts';

const first: Migration = {
  number: 1,
  name: 'one',
  sql: 'CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1);',
};
const second: Migration = {
  number: 2,
  name: 'two',
  sql: 'CREATE TABLE b (y TEXT) STRICT; UPDATE a SET x = x + 1; DROP TABLE b; CREATE INDEX ax ON a(x);',
};

function memory(): Database.Database {
  return new Database(':memory:');
}

test('schema.sql is what all migrations make (else run: node scripts/write-schema.ts)', () => {
  const database = memory();
  migrate(database, migrations, 0);
  assert.equal(readFileSync(new URL('./schema.sql', import.meta.url), 'utf8'), renderSchema(database));
});

test('each migration runs once, and a second start changes nothing', () => {
  const database = memory();
  migrate(database, [first], 7);
  migrate(database, [first, second], 8);
  migrate(database, [first, second], 9);
  assert.deepEqual(database.prepare('SELECT x FROM a').all(), [{ x: 2 }]);
  const applied = database.prepare('SELECT number, name, applied_at FROM migrations').all();
  assert.deepEqual(applied, [
    { number: 1, name: 'one', applied_at: 7 },
    { number: 2, name: 'two', applied_at: 8 },
  ]);
  assert.equal(database.pragma('foreign_keys', { simple: true }), 1);
});

test('a new database has all migrations in one transaction, or none; a later one waits for each', () => {
  const broken = { ...second, sql: 'INSERT INTO nowhere VALUES (1);' };
  const database = memory();
  assert.throws(() => migrate(database, [first, broken], 0), /no such table: nowhere/);
  assert.deepEqual(database.prepare('SELECT * FROM migrations').all(), []);
  let transactions = 0;
  const target = {
    exec: (sql: string) => {
      if (sql.startsWith('BEGIN')) transactions++;
      return database.exec(sql);
    },
    prepare: (sql: string) => database.prepare(sql),
    get inTransaction() {
      return database.inTransaction;
    },
  };
  migrate(target, [first, second], 0);
  assert.equal(transactions, 1);
  const third = { number: 3, name: 'three', sql: 'CREATE TABLE d (x);' };
  const fourth = { number: 4, name: 'four', sql: 'CREATE TABLE e (x);' };
  migrate(target, [first, second, third, fourth], 0);
  assert.equal(transactions, 3);
});

test('a database of a newer version is refused, naming both versions and what to do', () => {
  const database = memory();
  migrate(database, [first, second], 0);
  assert.throws(
    () => migrate(database, [first], 0),
    /^Error: The database has schema version 2, but this Cloudlet supports versions up to 1: start the newer .*$/,
  );
});

test('an edited migration is refused', () => {
  const database = memory();
  migrate(database, [first], 0);
  const edited = { ...first, sql: `${first.sql} -- edited` };
  assert.throws(() => migrate(database, [edited], 0), /a different migration 1/);
});

test('gaps in the numbers are refused', () => {
  assert.throws(() => migrate(memory(), [second], 0), /must have number 1/);
});

test('a migration that fails, or leaves a dangling reference, leaves no trace', () => {
  const database = memory();
  migrate(database, [first], 0);
  const before = renderSchema(database);
  const broken = { number: 2, name: 'broken', sql: 'CREATE TABLE c (z); INSERT INTO nowhere VALUES (1);' };
  assert.throws(() => migrate(database, [first, broken], 0), /no such table: nowhere/);
  const dangling = {
    number: 2,
    name: 'dangling',
    sql: `CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p(id));
      INSERT INTO c VALUES (5);`,
  };
  assert.throws(() => migrate(database, [first, dangling], 0), /dangling reference/);
  assert.equal(renderSchema(database), before);
  migrate(database, [first, second], 0);
});

test('a kill at any statement of a migration leaves the old schema or the new one', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-migrate-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const parts = second.sql.split(';').filter((part) => part.trim() !== '');
  for (let killAt = 0; killAt <= parts.length; killAt++) {
    const path = join(directory, `${killAt}.db`);
    const database = new Database(path);
    database.pragma('journal_mode = wal');
    migrate(database, [first], 0);
    const before = renderSchema(database);
    database.close();

    const sql = [...parts.slice(0, killAt), 'SELECT kill_now()', ...parts.slice(killAt)].join(';');
    const script = `import Database from 'better-sqlite3';
      import { migrate } from ${JSON.stringify(new URL('./migrate.ts', import.meta.url).href)};
      const database = new Database(${JSON.stringify(path)});
      database.function('kill_now', () => { process.kill(process.pid, 'SIGKILL'); });
      migrate(database, ${JSON.stringify([first, { ...second, sql }])}, 0);`;
    const child = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: new URL('../..', import.meta.url),
    });
    assert.equal(child.signal, 'SIGKILL', String(child.stderr));

    const again = new Database(path);
    assert.equal(renderSchema(again), before, `killed before statement ${killAt}`);
    migrate(again, [first, second], 0);
    assert.deepEqual(again.prepare('SELECT x FROM a').all(), [{ x: 2 }]);
    again.close();
  }
});

test('databases may be of any engine since 0041, and keep their rows, readings and next number', () => {
  const database = memory();
  const before = migrations.slice(0, 40);
  migrate(database, before, 0);
  const insert = (id: number, engine: string) =>
    database
      .prepare(
        `INSERT INTO databases (id, database_id, account_id, name, engine, region, state, engine_database, username,
           sealed_password, password_hash, size_limit_bytes, created_at, state_changed_at)
         VALUES (?, ?, 1, ?, ?, 'r', 'ready', ?, ?, x'00', ?, 1, 0, 0)`,
      )
      .run(id, `db-${id}`, `n${id}`, engine, `d_${id}`, `u_${id}`, Buffer.of(id));
  database.exec(
    "INSERT INTO accounts (id, username, email, password_hash, created_at) VALUES (1, 'a', 'e', '', 0)",
  );
  for (const [at, engine] of ['sqlite', 'postgresql', 'mysql', 'mongodb'].entries()) insert(at + 1, engine);
  assert.throws(() => insert(5, 'nothing'), /CHECK/);
  insert(9, 'sqlite');
  database.exec('DELETE FROM databases WHERE id = 9');
  database.exec('INSERT INTO database_samples (database, step_seconds, at) VALUES (1, 5, 0), (4, 5, 0)');
  const rowsOf = () => database.prepare('SELECT * FROM databases ORDER BY id').all();
  const rows = rowsOf();
  migrate(database, migrations, 1);
  assert.deepEqual(rowsOf(), rows);
  assert.equal(database.prepare('SELECT count(*) AS n FROM database_samples').pluck().get(), 2);
  assert.equal(database.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'databases'").pluck().get(), 9);
  insert(10, 'nothing');
  assert.throws(() => insert(11, null as unknown as string), /NOT NULL/);
  database.exec('DELETE FROM databases WHERE id = 1');
  assert.equal(database.prepare('SELECT count(*) FROM database_samples').pluck().get(), 1);
});
