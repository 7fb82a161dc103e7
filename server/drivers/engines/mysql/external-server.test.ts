/** The operator's own MariaDB: rules for every such server, and rules for this one only. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../../testing/eventually.ts';
import { SECRET, testExternalServer } from '../../../testing/external-server.conformance.ts';
import { connectMysql, externalMysqlFixture, noMysql } from '../../../testing/mysql-fixture.ts';
import { newDatabase } from '../../../testing/new-database.ts';
import { grantsOf, operatorMysql } from '../../../testing/operator-mysql.ts';
import { serverAddress } from '../../managed-server/links/server-url.ts';
import { type ServerFacts, unmetNeed, unverifiable } from './external-server-facts.ts';
import { MysqlEngine } from './mysql-engine.ts';

const SETTING = 'CLOUDLET_MYSQL_URL';

async function session(...[engine, database, password]: Parameters<typeof connectMysql>) {
  const client = await connectMysql(engine, database, password);
  const ask = async (sql: string) => (await client.query(sql))[0];
  return { ask, end: async () => client.destroy() };
}

function onEngine(engine: unknown): MysqlEngine {
  assert.ok(engine instanceof MysqlEngine);
  return engine;
}

if (noMysql !== false) test("the operator's MariaDB", { skip: noMysql }, () => {});
else
  testExternalServer(
    {
      name: 'MySQL',
      setting: SETTING,
      defaultPort: 3306,
      server: () => operatorMysql(),
      users: (password) =>
        [
          ...['maker', 'chief', 'weak'].map((user) => `CREATE USER ${user}@'%' IDENTIFIED BY '${password}'`),
          ...grantsOf("maker@'%'"),
          "GRANT ALL PRIVILEGES ON *.* TO chief@'%' WITH GRANT OPTION",
          'CREATE DATABASE shared; GRANT SELECT ON shared.* TO PUBLIC',
        ].flatMap((sql) => sql.split('; ')),
      fixture: (external) => externalMysqlFixture(external),
      connect: (engine, database, password) => session(onEngine(engine), database, password),
      version: /^\d+\.\d+\.\d+-MariaDB/,
      limits: /does not limit.*not counted \(userstat is off\).*can also use shared/,
      uri: /^mysql:\/\/u_.*:x@127.0.0.1:\d+\/d_/,
      tableInDump: /CREATE TABLE `t`/,
      lacks: [
        /lacks rights/,
        /CREATE USER, PROCESS, CONNECTION ADMIN ON \*\.\* TO 'weak'@'%'; GRANT ALL PRIVILEGES ON `d\\_%`/,
      ],
      lift: ['SET max_statement_time = 0'],
      sleep: 'SELECT SLEEP(1000)',
      ours: ({ database }) => ({
        user: database.replace('d_', 'w_'),
        take: "SET PASSWORD = PASSWORD('taken')",
      }),
    },
    ({ cloud, server }) => {
      test('a tenant sees nothing of others, makes no events, and a dropped database is there again', async (t) => {
        const engine = onEngine(cloud(t).engine);
        const [own, neighbour] = [newDatabase(), newDatabase()];
        for (const database of [own, neighbour]) await engine.provision(database, SECRET);
        const client = await connectMysql(engine, own, SECRET);
        const refused = (sql: string, errno: number) => assert.rejects(client.query(sql), { errno }, sql);
        await refused(`USE ${neighbour.database}`, 1044);
        await refused('SELECT * FROM mysql.global_priv', 1142);
        await refused('CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO SELECT 1', 1044);
        await client.query(`DROP DATABASE ${own.database}`);
        await eventually(() =>
          client.query(`USE ${own.database}`).then(
            () => true,
            () => false,
          ),
        );
        client.destroy();
      });

      test('of a database that is dropped nothing is left there', async (t) => {
        const { engine } = cloud(t);
        const database = newDatabase();
        await engine.provision(database, SECRET);
        await engine.drop(database.database);
        const rest = database.database.slice(2);
        const left = await server().run(`SELECT User FROM mysql.global_priv WHERE User LIKE '%${rest}'`);
        const rights = await server().run(`SELECT User FROM mysql.db WHERE Db LIKE '%${rest}'`);
        assert.deepEqual([left, rights], [[], []]);
      });
    },
  );

test('one that is too old, takes no writes, or does not tell sizes will not do', () => {
  const address = serverAddress(SETTING, 'mysql://u:p@db.example', 3306);
  const good: ServerFacts = {
    version: '8.4.2',
    kind: 'mysql',
    number: '8.4.2',
    isReadOnly: false,
    hasFiles: true,
    hasPlainGrants: false,
    countsUse: true,
    missing: [],
    limits: [],
  };
  assert.equal(unmetNeed(good, address), null);
  assert.equal(unmetNeed({ ...good, kind: 'mariadb', number: '10.6.1' }, address), null);
  assert.deepEqual([address.tls, address.port], [true, 3306]);
  for (const bad of [
    { number: '5.7.44' },
    { kind: 'mariadb' as const, number: '10.5.27' },
    { isReadOnly: true },
    { hasFiles: false },
    { hasPlainGrants: true },
    { missing: ['GRANT PROCESS ON *.* TO x'] },
  ])
    assert.equal(unmetNeed({ ...good, ...bad }, address)?.code, 'engine_unavailable');
});

test('a certificate that the driver cannot verify is not trusted', () => {
  const at = (host: string) => unverifiable(serverAddress(SETTING, `mysql://u:p@${host}`, 3306));
  assert.equal(at('db.example'), null);
  assert.equal(at('10.0.0.7')?.code, 'engine_unavailable');
  assert.equal(at('10.0.0.7/?sslmode=disable'), null);
});
