/** MariaDB as an engine, through the users' driver. */
import { test } from 'node:test';
import { type EngineHouse, testEngine } from '../../testing/engine.conformance.ts';
import { eventually } from '../../testing/eventually.ts';
import { mysqlHouse, noMysql } from '../../testing/mysql-house.ts';
import { mysqlEngineHouse } from '../../testing/mysql-notes.ts';

async function open(): Promise<EngineHouse> {
  const { engine, close } = mysqlHouse();
  const crash = async () => {
    process.kill(await eventually(() => engine.pid), 'SIGKILL');
  };
  return mysqlEngineHouse({ engine, crash, close });
}

if (noMysql === false) testEngine('mysql', open);
else test('MariaDB as Engine', { skip: noMysql }, () => {});
