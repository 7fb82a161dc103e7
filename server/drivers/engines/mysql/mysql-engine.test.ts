/** MariaDB as an engine, through the users' driver. */
import { test } from 'node:test';
import { type EngineFixture, testEngine } from '../../../testing/engine.conformance.ts';
import { eventually } from '../../../testing/eventually.ts';
import { mysqlFixture, noMysql } from '../../../testing/mysql-fixture.ts';
import { mysqlEngineFixture } from '../../../testing/mysql-notes.ts';
import { pidOf } from '../../../testing/server-fixture.ts';

async function open(): Promise<EngineFixture> {
  const { engine, close } = mysqlFixture();
  const crash = async () => {
    process.kill(await eventually(() => pidOf(engine)), 'SIGKILL');
  };
  return mysqlEngineFixture({ engine, crash, close });
}

if (noMysql === false) testEngine('mysql', open);
else test('MariaDB as Engine', { skip: noMysql }, () => {});
