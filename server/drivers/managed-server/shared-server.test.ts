/** The move from the single server that all accounts shared in earlier versions to their own servers. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { EngineDatabase } from '../../databases/engine.ts';
import { connectMysql, mysqlFixture, noMysql } from '../../testing/mysql-fixture.ts';
import { newDatabase } from '../../testing/new-database.ts';
import { connect, noPostgresql, postgresqlFixture } from '../../testing/postgresql-fixture.ts';
import type { ServerFixture } from '../../testing/server-fixture.ts';
import { MysqlEngine } from '../engines/mysql/mysql-engine.ts';
import { PostgresqlEngine } from '../engines/postgresql/postgresql-engine.ts';
import { keptPort } from '../server-port.ts';
import type { AccountOptions } from './accounts/account-kind.ts';
import type { AccountServers } from './accounts/account-servers.ts';
import type { Moving } from './shared-server.ts';
import type { AccountEngine } from './sql-engine.ts';

const STAYS = new AbortController().signal;

interface Given {
  readonly fixture: ServerFixture<AccountServers>;
  readonly shared: (options: AccountOptions) => AccountEngine;
  readonly options: () => AccountOptions;
  /** Of the files of the old server, only its data belongs to another user. */
  readonly isHalf: boolean;
  /** A data file without which it does not start; null: this is not tested. */
  readonly vital: string | null;
  /** Statements in the given database, by the user with this password. */
  readonly rows: (database: EngineDatabase, password: string) => Promise<unknown>;
}

const query = (statement: string) => ({
  statement,
  params: [],
  readOnly: false,
  maxRows: 10,
  maxBytes: 10_000,
  timeoutMs: 8000,
  signal: STAYS,
});

async function moves({ fixture, shared, options, rows, isHalf, vital }: Given): Promise<void> {
  const all = [1, 1, 2].map((accountId) => newDatabase({ accountId }));
  const [first, closed, other] = all as [EngineDatabase, EngineDatabase, EngineDatabase];
  const old = shared(options());
  for (const [at, database] of all.entries()) {
    await old.provision(database, `password-${at}`);
    await old.query(database, query('CREATE TABLE t (a int)'));
    await old.query(database, query(`INSERT INTO t VALUES (${at + 10})`));
  }
  await old.restrict(closed, 'none');
  const port = keptPort(join(fixture.folder, 'server', 'keeper'));
  await old.close();
  const owner = numberedOtherwise(join(fixture.folder, 'server', 'home'), isHalf);

  const engine = fixture.reopen();
  await assert.rejects(engine.list(), { code: 'engine_unavailable' });
  await assert.rejects(engine.tables(first, STAYS), { code: 'engine_unavailable' });
  const moving = all.map(
    (database) => ({ database, access: database === closed ? 'none' : 'full' }) as const,
  );
  if (vital !== null)
    await staysShut({ engine, moving, file: join(fixture.folder, 'server', 'home', vital) });
  await Promise.all([engine.moveIn(moving), engine.moveIn(moving)]);
  assert.equal((await engine.readiness()).available, true);
  assert.equal(engine.trouble(first), null);
  assert.deepEqual([...(await engine.list())].sort(), all.map(({ database }) => database).sort());
  assert.deepEqual(await rows(first, 'password-0'), [{ a: 10 }]);
  assert.deepEqual(await rows(other, 'password-2'), [{ a: 12 }]);
  await assert.rejects(rows(closed, 'password-1'));
  assert.equal((await engine.endpoint(first)).port, port);
  assert.notEqual((await engine.endpoint(other)).port, port);
  const there = ['server', 'server.moved'].map((name) => existsSync(join(fixture.folder, name)));
  assert.deepEqual(there, [false, true]);
  if (owner !== null)
    assert.equal(lstatSync(join(fixture.folder, 'server.moved', 'home', 'data')).uid, owner);
  await engine.restrict(closed, 'full');
  assert.deepEqual(await rows(closed, 'password-1'), [{ a: 11 }]);
  if (owner === null) return;
  // A copy of the directory without the owners of its files.
  await engine.close();
  const home = join(fixture.folder, 'accounts', '1', 'home');
  execFileSync('chown', ['-Rh', '0:0', home]);
  await fixture.reopen().wake();
  assert.deepEqual(await rows(first, 'password-0'), [{ a: 10 }]);
  assert.equal(lstatSync(join(home, 'data')).uid, options().uidOf(1));
}

/** While the old server lacks that file: no database moves, and the reason is shown without a path. */
async function staysShut({
  engine,
  moving,
  file,
}: {
  engine: AccountServers;
  moving: readonly Moving[];
  file: string;
}) {
  renameSync(file, `${file}.away`);
  await assert.rejects(engine.moveIn(moving), { code: 'engine_unavailable' });
  const { available, reason, fix } = await engine.readiness();
  assert.equal(available, false);
  assert.match(`${reason}`, /does not start/);
  assert.notEqual(fix, null);
  const [{ database } = { database: newDatabase({ accountId: 1 }) }] = moving;
  const trouble = String(engine.trouble(database)?.message);
  assert.match(trouble, /old server that still holds the database .* does not start/);
  assert.doesNotMatch(`${reason}${trouble}`, /\//);
  await assert.rejects(engine.tables(database, STAYS), {
    code: 'engine_unavailable',
    message: /does not start/,
  });
  renameSync(`${file}.away`, file);
}

/**
 * Gives the server to a user with another number, as in earlier versions. `isHalf`: its data only, like a
 * version that gave the rest to the user that it computed. Returns the number; null: everything belongs to
 * us.
 */
function numberedOtherwise(home: string, isHalf: boolean): number | null {
  const { uid } = lstatSync(home);
  if (uid === process.getuid?.()) return null;
  const other = uid + 500;
  execFileSync('chown', ['-Rh', `${other}:${other}`, isHalf ? join(home, 'data') : home]);
  return other;
}

test('databases of PostgreSQL move with their rows, passwords and states', {
  skip: noPostgresql,
}, async (t) => {
  const fixture = postgresqlFixture();
  t.after(() => fixture.close());
  const rows = async (database: EngineDatabase, password: string) => {
    const client = await connect(fixture.reopened(), database, password);
    return client
      .query('SELECT a FROM t')
      .then(({ rows: found }) => found)
      .finally(() => client.end());
  };
  const shared = (options: AccountOptions) => new PostgresqlEngine(options);
  await moves({
    fixture,
    shared,
    options: fixture.options,
    rows,
    isHalf: true,
    vital: 'data/global/pg_control',
  });
});

test('databases of MariaDB move with their rows, passwords and states', { skip: noMysql }, async (t) => {
  const fixture = mysqlFixture();
  t.after(() => fixture.close());
  const rows = async (database: EngineDatabase, password: string) => {
    const driver = await connectMysql(fixture.reopened(), database, password);
    return driver
      .query('SELECT a FROM t')
      .then(([found]) => JSON.parse(JSON.stringify(found)))
      .finally(() => driver.end());
  };
  const shared = (options: AccountOptions) => new MysqlEngine(options);
  await moves({ fixture, shared, options: fixture.options, rows, isHalf: false, vital: null });
});
