/**
 * knex from npm with its default settings, and requirements of the test suites of knex and node-postgres
 * beyond statements: sessions that see themselves, roles, TLS, time-outs. Neither suite is a package.
 */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { Client as Postgresql } from 'pg';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { NpmFolder } from './npm-folder.ts';

const PACKAGES = ['knex@3.3.0', 'pg@8.23.1', 'mysql2@3.24.6', 'pg-query-stream@4.17.0'];
const ENGINES = {
  postgresql: { client: 'pg', programs: 'postgresql', why: NO_POSTGRESQL },
  mysql: { client: 'mysql2', programs: 'mariadb', why: NO_MARIADB },
} as const;

const FILES = {
  'knexfile.js': `
const { CLIENT: client, URI: connection } = process.env;
export default { client, connection };
`,
  'migrations/1_first.js': `
const up = (knex) => knex.schema
  .createTable('authors', (table) => {
    table.increments();
    table.string('name').notNullable().unique();
    table.json('more');
    table.enu('kind', ['a', 'b']).defaultTo('a');
    table.timestamps(true, true);
  })
  .createTable('notes', (table) => {
    table.bigIncrements();
    table.text('text').comment('what it says');
    table.decimal('price', 10, 2);
    table.integer('author_id').unsigned().references('authors.id').onDelete('CASCADE').index();
  });
const down = (knex) => knex.schema.dropTable('notes').dropTable('authors');
export { up, down };
`,
  'migrations/2_second.js': `
const up = (knex) => knex.schema
  .alterTable('notes', (table) => {
    table.renameColumn('text', 'body');
    table.string('slug').index();
    table.datetime('at').nullable();
  })
  .createView('cheap', (view) => view.as(knex('notes').where('price', '<', 5)));
const down = (knex) => knex.schema.dropView('cheap').alterTable('notes', (table) => {
  table.renameColumn('body', 'text');
  table.dropColumns('slug', 'at');
});
export { up, down };
`,
  'use.mjs': `
import knexOf from 'knex';
import settings from './knexfile.js';
const [one, two] = [knexOf(settings), knexOf(settings)];
const isPostgresql = settings.client === 'pg';
const found = {};
const [ada] = isPostgresql
  ? (await one('authors').insert({ name: 'ada', more: { a: 1 } }).returning('id')).map(({ id }) => id)
  : await one('authors').insert({ name: 'ada', more: JSON.stringify({ a: 1 }) });
await one.batchInsert('notes', Array.from({ length: 1000 }, (_, n) => ({ body: 'n' + n, price: n / 100, author_id: ada })), 200);
found.count = Number((await one('notes').count({ n: '*' }))[0].n);
found.cheap = Number((await one('cheap').count({ n: '*' }))[0].n);
await one.transaction(async (trx) => {
  await trx('authors').insert({ name: 'eve' });
  await trx.transaction((inner) => inner('authors').insert({ name: 'ada' })).catch(() => {});
  await trx('authors').where({ name: 'eve' }).forUpdate().update({ kind: 'b' });
});
found.eve = (await one('authors').where({ name: 'eve' }).first('kind')).kind;
await one('authors').insert({ name: 'eve', kind: 'a' }).onConflict('name').merge(['kind']);
found.merged = (await one('authors').where({ name: 'eve' }).first('kind')).kind;
found.joined = await one('notes').join('authors', 'authors.id', 'notes.author_id').where('notes.body', 'n7').select('authors.name');
found.with = Number((await one.with('few', one('notes').limit(3)).from('few').count({ n: '*' }))[0].n);
let streamed = 0;
for await (const _ of one('notes').stream()) streamed++;
found.streamed = streamed;
found.columns = Object.keys(await one('notes').columnInfo()).sort();
const sleep = isPostgresql ? 'SELECT pg_sleep(0.2)' : 'SELECT SLEEP(0.2)';
// Both pools of ten are full at the same time, and more clients wait.
await Promise.all([one, two].flatMap((each) => Array.from({ length: 15 }, () => each.raw(sleep))));
const late = one.raw(isPostgresql ? 'SELECT pg_sleep(20)' : 'SELECT SLEEP(20)').timeout(300, { cancel: true });
found.late = await late.catch(({ name }) => name);
const running = isPostgresql
  ? (await one.raw("SELECT count(*)::int AS n FROM pg_stat_activity WHERE query LIKE '%pg_sleep(20)%' AND state = 'active' AND pid <> pg_backend_pid()")).rows[0].n
  : (await one.raw('SHOW FULL PROCESSLIST'))[0].filter(({ Info }) => /SLEEP\\(20\\)/.test(Info ?? '')).length;
found.running = running;
await Promise.all([one.destroy(), two.destroy()]);
console.log(JSON.stringify(found));
`,
};

const skipOf = (programs: string, why: string) =>
  globSync(`build/programs/${programs}-*/usr`).length > 0 ? false : why;

describe('SQL clients with their default settings', () => {
  let cloud: CloudProcess;
  let user: Client;
  let folder: NpmFolder;
  before(async () => {
    folder = await NpmFolder.with(PACKAGES, FILES);
    cloud = await CloudProcess.start();
    user = await new Client(cloud.api).newUser();
  });
  after(async () => {
    folder?.remove();
    await cloud?.stop();
  });

  async function newUri(name: string, engine: string, tls = ''): Promise<{ uri: string; ca: string }> {
    const { status, body } = await user.call('/api/databases', { json: { name, engine } });
    assert.equal(status, 201, JSON.stringify(body));
    const { body: read } = await user.call(`/api/databases/${body.database_id}/credentials${tls}`);
    return { uri: read.connection.uri, ca: read.ca };
  }

  for (const [engine, { client, programs, why }] of Object.entries(ENGINES))
    test(`knex on ${engine}`, { skip: skipOf(programs, why) }, async () => {
      const { uri } = await newUri(engine, engine);
      const env = { CLIENT: client, URI: uri };
      const cli = 'node_modules/knex/bin/cli.js';
      assert.match(await folder.run([cli, 'migrate:latest'], env), /Batch 1 run: 2 migrations/);
      const columns = ['at', 'author_id', 'body', 'id', 'price', 'slug'];
      assert.deepEqual(JSON.parse(await folder.run(['use.mjs'], env)), {
        count: 1000,
        cheap: 500,
        eve: 'b',
        merged: 'a',
        joined: [{ name: 'ada' }],
        with: 3,
        streamed: 1000,
        columns,
        late: 'KnexTimeoutError',
        running: 0,
      });
      assert.match(await folder.run([cli, 'migrate:rollback'], env), /Batch 1 rolled back: 2 migrations/);
    });

  test('node-postgres: its sessions, roles, TLS and time-outs', {
    skip: skipOf('postgresql', NO_POSTGRESQL),
  }, async (t) => {
    const { uri, ca } = await newUri('driver', 'postgresql', '?tls=true');
    const bare = uri.replace(/\?.*/, '');
    const open = async (more: object) => {
      const driver = new Postgresql({ connectionString: bare, ...more });
      driver.on('error', () => {});
      t.after(() => driver.end());
      await driver.connect();
      return driver;
    };
    const secure = await open({ ssl: { ca } });
    const other = await open({ application_name: 'other', statement_timeout: 3000 });
    const slow = assert.rejects(other.query('SELECT pg_sleep(20)'), { code: '57014' });
    const activity = "SELECT query FROM pg_stat_activity WHERE application_name = 'other'";
    await eventually('a session sees another of its user', async () => {
      const { rows } = await secure.query(activity);
      return /pg_sleep/.test(rows[0]?.query);
    });
    await slow;
    const hasty = await open({ query_timeout: 100 });
    await assert.rejects(hasty.query('SELECT pg_sleep(1)'), /Query read timeout/);
    const idle = await open({ idle_in_transaction_session_timeout: 100 });
    const ended = new Promise<Error & { code?: string }>((resolve) => idle.on('error', resolve));
    await idle.query('BEGIN');
    assert.equal((await ended).code, '25P03');
    const lock = await open({ lock_timeout: 100 });
    await secure.query('CREATE TABLE t (a int)');
    await secure.query('BEGIN; LOCK TABLE t');
    await assert.rejects(lock.query('SELECT * FROM t'), { code: '55P03' });
    await secure.query('COMMIT');
    await secure.query("CREATE ROLE reader LOGIN PASSWORD 'secret'; GRANT SELECT ON t TO reader");
    const { rows: at } = await secure.query('SELECT current_database() AS name');
    await secure.query(`GRANT CONNECT ON DATABASE ${at[0].name} TO reader`);
    const reader = await open({ connectionString: bare.replace(/\/\/[^@]+@/, '//reader:secret@') });
    assert.deepEqual((await reader.query('SELECT * FROM t')).rows, []);
    await assert.rejects(reader.query('INSERT INTO t VALUES (1)'), { code: '42501' });
    await reader.end();
    await secure.query(`REVOKE ALL ON t FROM reader; REVOKE CONNECT ON DATABASE ${at[0].name} FROM reader`);
    await secure.query('DROP ROLE reader');
    await secure.query('LISTEN news');
    const told = new Promise<string | undefined>((resolve) => {
      secure.on('notification', ({ payload }) => resolve(payload));
    });
    await lock.query("NOTIFY news, 'hello'");
    assert.equal(await told, 'hello');
  });
});
