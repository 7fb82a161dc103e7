/** Exports of all rows of a table: without a key, with generated columns, and interrupted midway. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, globSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { CliUser } from './cli-kit.ts';
import { DATABASES, DELETE, run } from './databases-kit.ts';

let cloud: CloudProcess;
let cli: CliUser & { readonly key: string };
let user: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start();
  cli = await CliUser.signedIn(cloud.api);
  user = await CheckedClient.open(cloud.api, cli.key);
});
after(() => cloud.stop());

const isHere = (program: string) => globSync(`build/programs/${program}-*/usr`).length > 0;
const TWICE = 'twice int GENERATED ALWAYS AS (n * 2)';
const ENGINES = [
  { engine: 'sqlite', skip: false, made: `id INTEGER PRIMARY KEY, n INTEGER, ${TWICE} STORED` },
  {
    engine: 'postgresql',
    skip: isHere('postgresql') ? false : NO_POSTGRESQL,
    made: `id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int, ${TWICE} STORED`,
  },
  {
    engine: 'mysql',
    skip: isHere('mariadb') ? false : NO_MARIADB,
    made: `id int AUTO_INCREMENT PRIMARY KEY, n int, ${TWICE} VIRTUAL`,
  },
];
/** More than the buffers of sockets and both ends hold. */
const BIG_ROWS = 400;
const BIG_TEXT = 'y'.repeat(90_000);

const responseOf = (path: string, query: string) =>
  fetch(`${cloud.api}${path}/rows/export?${query}`, { headers: { 'x-api-key': user.key ?? '' } });

for (const { engine, skip, made } of ENGINES)
  describe(`rows of ${engine}`, { skip }, () => {
    let path: string;
    const exported = async (table: string, format: string) => {
      const response = await responseOf(path, `table=${table}&format=${format}`);
      assert.equal(response.status, 200);
      return response.text();
    };
    const newDatabase = async (name: string) => {
      const { database_id: id } = await user.expect(201, DATABASES, {
        json: { name: `${name}-${engine}`, engine },
      });
      return `${DATABASES}/${id}`;
    };
    before(async () => {
      path = await newDatabase('all');
    });

    /** A database whose table `big` takes long to send to a client that has stopped reading. */
    const bigDatabase = async (name: string) => {
      const big = await newDatabase(name);
      const type = engine === 'mysql' ? 'longtext' : 'text';
      await run(user, big, `CREATE TABLE big (a int PRIMARY KEY, t ${type})`);
      for (let from = 0; from < BIG_ROWS; from += 40) {
        const rows = Array.from({ length: 40 }, (_, at) => ({ a: from + at, t: BIG_TEXT }));
        const changes = rows.map((values) => ({ action: 'insert', values }));
        await user.expect(200, `${big}/rows/change`, { json: { table: 'big', changes } });
      }
      return big;
    };

    test('are exported without a key too, and of a view', async () => {
      await run(user, path, 'CREATE TABLE keyless (a int, t varchar(2000))');
      const numbers = Array.from({ length: 3000 }, (_, at) => at);
      for (let from = 0; from < numbers.length; from += 300) {
        const rows = numbers.slice(from, from + 300).map((at) => `(${at}, '${'x'.repeat(at % 300)}')`);
        await run(user, path, `INSERT INTO keyless VALUES ${rows.join(', ')}`);
      }
      await run(user, path, 'CREATE VIEW few AS SELECT a FROM keyless WHERE a < 2');
      const [, ...lines] = (await exported('keyless', 'csv')).trimEnd().split('\r\n');
      const found = lines.map((line) => line.split(','));
      assert.deepEqual(
        found.map(([at]) => Number(at)).toSorted((one, next) => one - next),
        numbers,
      );
      assert.ok(found.every(([at, text]) => text?.replaceAll('"', '') === 'x'.repeat(Number(at) % 300)));
      const few = (await exported('few', 'csv')).trimEnd().split('\r\n');
      assert.deepEqual(few.toSorted(), ['0', '1', 'a']);
    });

    test('are exported as SQL that loads, also with columns that take no values', async () => {
      await run(user, path, `CREATE TABLE made (${made})`);
      await run(user, path, 'INSERT INTO made (n) VALUES (2)');
      await run(user, path, 'INSERT INTO made (n) VALUES (3)');
      const read = async () =>
        (await user.expect(200, `${path}/rows/read`, { json: { table: 'made' } })).rows;
      const rows = [
        [1, 2, 4],
        [2, 3, 6],
      ];
      assert.deepEqual(await read(), rows);
      const sql = await exported('made', 'sql');
      await run(user, path, 'DELETE FROM made');
      for (const line of sql.split(/;\n/).slice(0, -1)) await run(user, path, line);
      assert.deepEqual(await read(), rows);
      const tables: { name: string; columns: { name: string; generated?: boolean }[] }[] = await user.expect(
        200,
        `${path}/tables`,
      );
      const columns = tables.find(({ name }) => name === 'made')?.columns ?? [];
      assert.deepEqual(
        columns.map(({ name, generated = false }) => [name, generated]),
        [
          ['id', false],
          ['n', false],
          ['twice', true],
        ],
      );
    });

    test('that end midway are told from all rows: a deletion does not wait for a slow reader', async () => {
      const big = await bigDatabase('cut');
      const response = await responseOf(big, 'table=big');
      assert.equal(response.status, 200);
      const reader = response.body?.getReader();
      await reader?.read();
      await user.expect(200, big, DELETE);
      await assert.rejects(async () => {
        for (;;) if ((await reader?.read())?.done !== false) return;
      });
    });

    test('that end midway leave no file of the client', async () => {
      const big = await bigDatabase('part');
      const file = join(cli.home, 'big.csv');
      const running = cli.start(['db', 'export', `part-${engine}`, 'big', 'big.csv']);
      const part = () => statSync(`${file}.part`, { throwIfNoEntry: false })?.size ?? 0;
      for (let tries = 0; part() === 0; tries++) {
        assert.ok(tries < 30_000, 'nothing of the export arrived');
        await sleep(1);
      }
      running.kill('SIGSTOP');
      const ended = once(running, 'close');
      await user.expect(200, big, DELETE);
      running.kill('SIGCONT');
      const [code] = await ended;
      assert.notEqual(code, 0);
      assert.deepEqual([existsSync(file), existsSync(`${file}.part`)], [false, false]);
    });
  });
