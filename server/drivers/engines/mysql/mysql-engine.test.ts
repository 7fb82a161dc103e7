/** MariaDB as an engine, with the users' driver. */
import { join } from 'node:path';
import { test } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { testTemplates } from '../../../testing/data-template.conformance.ts';
import { type EngineFixture, testEngine } from '../../../testing/engine.conformance.ts';
import { eventually } from '../../../testing/eventually.ts';
import { testFirstConnection } from '../../../testing/first-connection.conformance.ts';
import { mysqlFixture, noMysql } from '../../../testing/mysql-fixture.ts';
import { mysqlEngineFixture } from '../../../testing/mysql-notes.ts';
import { pidOf } from '../../../testing/server-fixture.ts';
import { SOCKET } from './mysql-server.ts';
import { ADMIN } from './mysql-store.ts';

async function open(): Promise<EngineFixture> {
  const { engine, close } = mysqlFixture();
  const crash = async () => {
    process.kill(await eventually(() => pidOf(engine)), 'SIGKILL');
  };
  return mysqlEngineFixture({ engine, crash, close });
}

if (noMysql === false) {
  testEngine('mysql', open);
  testFirstConnection('mysql', open);
  testTemplates('mysql', {
    admin: ADMIN,
    open: (templates) => mysqlFixture({ templates }),
    logIn: async ({ folder }, user, password) => {
      const client = await createConnection({ socketPath: join(folder, SOCKET), user, password });
      await client.end();
    },
    refusal: /Access denied/,
  });
} else test('MariaDB as Engine', { skip: noMysql }, () => {});
