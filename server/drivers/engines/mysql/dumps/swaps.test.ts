/** The last step of a load into MariaDB, interrupted anywhere: it is completed later, including views. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { RowDataPacket } from 'mysql2/promise';
import { type EngineDatabase, LoadFailed } from '../../../../databases/engine.ts';
import { randomName } from '../../../../platform/ids.ts';
import { connectMysql, type MysqlFixture, mysqlFixture, noMysql } from '../../../../testing/mysql-fixture.ts';
import { newDatabase } from '../../../../testing/new-database.ts';
import { readServerSecret } from '../../../managed-server/links/server-secret.ts';
import { socketFolder } from '../../../managed-server/server-data.ts';
import { type Admin, databases } from '../admin-store.ts';
import * as contents from '../contents-store.ts';
import { OWN_DIALECT } from '../dialects.ts';
import { MysqlLinks } from '../mysql-links.ts';
import * as store from '../mysql-store.ts';
import { Swaps } from './swaps.ts';

const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
/** A swap does not send more statements than this. */
const MOST = 200;

const TABLES = ['CREATE TABLE both_have (a int)', 'INSERT INTO both_have VALUES (1)'];
/** Everything but tables; their results show to which version they belong. */
const programsOf = (time: number) =>
  Buffer.from(
    [
      `CREATE FUNCTION f() RETURNS int RETURN ${time};`,
      `CREATE PROCEDURE p() SELECT ${time} AS n;`,
      `CREATE TRIGGER g BEFORE INSERT ON both_have FOR EACH ROW SET NEW.a = ${time};`,
      `CREATE VIEW v AS SELECT ${time} AS n, COUNT(*) AS count FROM both_have;`,
    ].join('\n'),
  );

describe('the swap at the end of a load into MariaDB', { skip: noMysql }, () => {
  let fixture: MysqlFixture;
  let links: MysqlLinks;
  let database: EngineDatabase;
  let name: string;
  before(async () => {
    fixture = mysqlFixture();
    database = newDatabase();
    name = database.database;
    await fixture.engine.provision(database, SECRET);
    const server = join(fixture.folder, 'accounts', '1');
    const folders = { home: join(server, 'home'), keeper: join(server, 'keeper') };
    links = new MysqlLinks({
      administrator: { user: store.ADMIN, database: 'mysql', password: () => links.passwordOf(store.ADMIN) },
      endpoint: { socket: () => ({ folder: socketFolder(folders), port: 0 }) },
      secret: () => readServerSecret(folders),
      isUp: () => true,
      dialect: () => OWN_DIALECT,
    });
  });
  after(async () => {
    links.close();
    await fixture.close();
  });

  /** Swaps of a Cloudlet that is killed after this many statements. */
  function swapsOf(statements: number): Swaps {
    let left = statements;
    const live = () => {
      if (left-- <= 0) throw new Error('killed');
    };
    const mortal = (admin: Admin): Admin =>
      new Proxy(admin, {
        get: (target, key) => {
          if (key !== 'query') return Reflect.get(target, key);
          live();
          return target.query.bind(target);
        },
      });
    return new Swaps({
      folder: join(fixture.folder, 'accounts', '1', 'loads'),
      links: {
        asAdmin: (work) => links.asAdmin((admin) => work(mortal(admin))),
        putBackPassword: (user) => links.putBackPassword(user),
      },
      fill: (into, user, sql) =>
        links.as({ user, database: into }, async (driver) => {
          for (const statement of sql.toString().split(';\n')) {
            live();
            await driver
              .promise()
              .query(statement)
              .catch((error) => {
                throw new LoadFailed(error.message);
              });
          }
        }),
      up: async () => {},
      warn: () => {},
    });
  }

  /** Beside the database, with a table that shows to which version it belongs. */
  async function loaded(time: number) {
    const [fresh, old] = [`t_${randomName(16)}`, `t_${randomName(16)}`];
    const replaced = await links.asAdmin(async (admin) => {
      await store.makeDatabase(admin, fresh);
      await admin.query(`USE ${fresh}`);
      for (const statement of [...TABLES, `CREATE TABLE of_${time} (a int)`]) await admin.query(statement);
      return contents.tablesOf(admin, name);
    });
    return { swap: { database: name, fresh, old, replaced, access: 'full' as const }, fresh };
  }

  async function assertWholeOf(time: number): Promise<void> {
    const client = await connectMysql(fixture.engine, database, SECRET);
    const all = async (sql: string) => Object.values((await client.query<RowDataPacket[]>(sql))[0]);
    const tables = (await all("SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'")).map((row) =>
      String(Object.values(row)[0]),
    );
    assert.deepEqual(tables.sort(), ['both_have', `of_${time}`]);
    assert.deepEqual(await all('SELECT f() AS n'), [{ n: time }]);
    assert.deepEqual((await all('CALL p()'))[0], [{ n: time }]);
    assert.deepEqual(await all('SELECT * FROM v'), [{ n: time, count: 1 }]);
    await client.query('INSERT INTO both_have VALUES (0)');
    assert.deepEqual(await all('SELECT MAX(a) AS n FROM both_have'), [{ n: time }]);
    client.destroy();
  }

  test('cut off after any of its statements, it is finished afterwards', async () => {
    let isDone = false;
    for (let statements = 0; !isDone && statements < MOST; statements += 2) {
      const time = 1000 + statements;
      const { swap, fresh } = await loaded(time);
      const programs = programsOf(time);
      isDone = await swapsOf(statements)
        .run(swap, programs)
        .then(
          () => true,
          (error) => {
            assert.match(error.message, /killed/);
            return false;
          },
        );
      const next = swapsOf(Number.POSITIVE_INFINITY);
      await next.finishAll();
      assert.equal(next.isPending(fresh), false);
      await assertWholeOf(time);
    }
    assert.ok(isDone);
  });

  test('a new start of Cloudlet finishes it, and removes what is left', async () => {
    const { swap } = await loaded(1);
    const programs = programsOf(1);
    await assert.rejects(swapsOf(25).run(swap, programs), /killed/);
    await fixture.reopen().tables(database, new AbortController().signal);
    await assertWholeOf(1);
    const kept = await links.asAdmin(databases);
    assert.deepEqual(
      kept.filter((one) => one.startsWith('t_')),
      [],
    );
    assert.deepEqual(readdirSync(join(fixture.folder, 'accounts', '1', 'loads')), []);
  });

  test('programs that cannot be made are reported, and the tables are there', async () => {
    const { swap } = await loaded(2);
    const run = swapsOf(MOST).run(swap, Buffer.from('CREATE VIEW v AS SELECT * FROM missing'));
    await assert.rejects(run, (error) => error instanceof LoadFailed && /not all views/.test(error.message));
    const client = await connectMysql(fixture.engine, database, SECRET);
    await client.query('SELECT * FROM of_2');
    client.destroy();
  });

  test('of a database that is dropped nothing is finished', async () => {
    const { swap, fresh } = await loaded(3);
    await assert.rejects(swapsOf(10).run(swap, programsOf(3)), /killed/);
    await fixture.engine.drop(name);
    assert.ok(!existsSync(join(fixture.folder, 'accounts', '1', 'loads', `${fresh}.swap`)));
    const next = fixture.reopen();
    assert.deepEqual(await next.list(), []);
  });
});
