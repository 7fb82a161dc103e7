/** The operator's own MariaDB as an engine, with the users' driver. */
import { test } from 'node:test';
import { type EngineFixture, testEngine } from '../../../testing/engine.conformance.ts';
import { externalMysqlFixture, noMysql } from '../../../testing/mysql-fixture.ts';
import { mysqlEngineFixture } from '../../../testing/mysql-notes.ts';
import { grantsOf, operatorMysql } from '../../../testing/operator-mysql.ts';
import { serverAddress } from '../../managed-server/links/server-url.ts';

/** With exactly the permissions that Cloudlet asks for, and default settings. */
async function open(): Promise<EngineFixture> {
  const server = await operatorMysql();
  for (const sql of ["CREATE USER maker@'%' IDENTIFIED BY 'p:/@ word'", ...grantsOf("maker@'%'")])
    await server.run(sql);
  const address = serverAddress('CLOUDLET_MYSQL_URL', server.url('maker', 'p:/@ word'), 3306);
  const { engine, close } = externalMysqlFixture(address);
  return mysqlEngineFixture({
    engine,
    crash: () => server.crash(),
    close: async () => {
      await close();
      await server.close();
    },
  });
}

if (noMysql === false) testEngine('mysql by URL', open);
else test("The operator's MariaDB as Engine", { skip: noMysql }, () => {});
