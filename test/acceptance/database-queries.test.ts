/** Queries over the API, in each available engine: listed while they run, and ended when cancelled. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { DATABASES, POST } from './databases-kit.ts';

let cloud: CloudProcess;
let user: CheckedClient;
let other: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start();
  const anyone = await CheckedClient.open(cloud.api);
  user = anyone.as((await anyone.register()).api_key);
  other = anyone.as((await anyone.register()).api_key);
});
after(() => cloud.stop());

const isHere = (program: string) => globSync(`build/programs/${program}-*/usr`).length > 0;

interface Case {
  readonly engine: string;
  readonly skip: string | false;
  readonly made: readonly object[];
  /** Runs for longer than ten seconds, and would write at its end. */
  readonly slow: object;
  /** It returns no rows unless `slow` or a part of it still exists. */
  readonly left: object;
  /** It returns the rows 1 to 2500. */
  readonly many: object;
  /** With fewer than five rows. */
  readonly ends: readonly object[];
  /** Another write to the rows locked by `slow`. */
  readonly next: object;
}

const BUSY = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000000)';
const MULTIPLY = [{ $addFields: { a: { $range: [0, 1000] } } }, { $unwind: '$a' }];
const COUNTED = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)';
const sql = (statement: string) => ({ statement });

const CASES: readonly Case[] = [
  {
    engine: 'sqlite',
    skip: false,
    made: [sql('CREATE TABLE t (a int)')],
    slow: sql(`INSERT INTO t ${BUSY} SELECT count(*) FROM n`),
    left: sql('SELECT a FROM t'),
    many: sql(`${COUNTED} SELECT (a.i - 1) * 50 + b.i AS i FROM n AS a, n AS b ORDER BY i`),
    ends: [sql('SELECT 1')],
    next: sql('CREATE TABLE next (a int)'),
  },
  {
    engine: 'postgresql',
    skip: isHere('postgresql') ? false : NO_POSTGRESQL,
    made: [sql('CREATE TABLE t (a int)')],
    slow: sql(`WITH s AS (SELECT 1 FROM pg_sleep(60)) INSERT INTO t SELECT 1 FROM s`),
    left: sql(`SELECT 1 FROM t UNION ALL SELECT 1 FROM pg_stat_activity
      WHERE query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()`),
    many: sql(`${COUNTED} SELECT (a.i - 1) * 50 + b.i AS i FROM n AS a, n AS b ORDER BY i`),
    ends: [sql('SELECT 1')],
    next: sql('ALTER TABLE t ADD COLUMN b int'),
  },
  {
    engine: 'mysql',
    skip: isHere('mariadb') ? false : NO_MARIADB,
    made: [sql('CREATE TABLE t (a int)')],
    slow: sql('INSERT INTO t SELECT sleep(60)'),
    left: sql(`SELECT 1 FROM t UNION ALL SELECT 1 FROM information_schema.processlist
      WHERE info LIKE '%sleep(60)%' AND id <> connection_id()`),
    many: sql(`${COUNTED} SELECT (a.i - 1) * 50 + b.i AS i FROM n AS a, n AS b ORDER BY i`),
    ends: [sql('SELECT 1')],
    next: sql('ALTER TABLE t ADD COLUMN b int'),
  },
  {
    engine: 'mongodb',
    skip: false,
    made: [{ command: { insert: 't', documents: [{ _id: 1 }] } }],
    slow: {
      command: {
        aggregate: 't',
        pipeline: [...Array(6).fill(MULTIPLY).flat(), { $group: { _id: '$a' } }, { $out: 'made' }],
        cursor: {},
      },
    },
    left: { command: { find: 'made', filter: {} } },
    many: {
      command: {
        aggregate: 1,
        pipeline: [{ $documents: [{ n: { $range: [1, 2501] } }] }, { $unwind: '$n' }],
        cursor: {},
      },
    },
    ends: [
      { command: { find: 't', filter: {}, limit: 3 } },
      { command: { find: 't', filter: {} } },
      { command: { listCollections: 1 } },
    ],
    next: { command: { insert: 'made', documents: [{ _id: 1 }] } },
  },
];

for (const { engine, skip, made, slow, left, next, many, ends } of CASES) {
  describe(`a query in ${engine}`, { skip }, () => {
    let path: string;
    const query = (json: object) => user.expect(200, `${path}/query`, { json });
    const running = () => user.expect(200, `${path}/queries`);
    const begun = async () => {
      await eventually('the query runs', async () => (await running()).length === 1);
    };
    before(async () => {
      const created = await user.expect(201, DATABASES, { json: { name: `cancel-${engine}`, engine } });
      path = `${DATABASES}/${created.database_id}`;
      for (const one of made) await query({ ...one, read_only: false });
    });
    const isGone = async () => {
      const found = await user.call(`${path}/query`, { json: left });
      return found.status === 200 && found.body.rows.length === 0;
    };

    test('ends in the server when it is cancelled by its id, by its own account only', async () => {
      const json = { ...slow, read_only: false, query_id: 'report_1' };
      const answer = user.refused(409, 'operation_cancelled', [`${path}/query`, { json }]);
      await begun();
      const [{ query_id, read_only, statement }] = await running();
      assert.deepEqual([query_id, read_only], ['report_1', false]);
      assert.ok(statement.length <= 200 && statement.length > 10);
      const twice = [`${path}/query`, { json: { ...json, read_only: true } }] as const;
      await user.refused(400, 'invalid_request', [...twice]);
      await other.refused(404, 'database_not_found', [`${path}/queries/report_1/cancel`, POST]);
      await user.refused(404, 'not_found', [`${path}/queries/report_2/cancel`, POST]);
      assert.equal((await user.expect(200, `${path}/queries/report_1/cancel`, POST)).query_id, 'report_1');
      await answer;
      assert.deepEqual(await running(), []);
      await eventually('nothing of it is left in the server', isGone);
      await user.refused(404, 'not_found', [`${path}/queries/report_1/cancel`, POST]);
    });

    test('of more rows than come at once gives them page by page', async () => {
      const pages = [];
      let skip = 0;
      for (let isMore = true; isMore; ) {
        const page = await query({ ...many, max_rows: 1000, skip });
        pages.push(page.rows);
        skip += page.row_count;
        isMore = page.truncated;
      }
      assert.deepEqual(
        pages.map(({ length }) => length),
        [1000, 1000, 500],
      );
      const [from, to] = [pages[1][0][0], pages[2].at(-1)[0]];
      assert.deepEqual([Number(from), Number(to)], [1001, 2500]);
      for (const one of ends) assert.deepEqual((await query({ ...one, skip: 5 })).rows, []);
      const write = { ...many, read_only: false, skip: 5 };
      await user.refused(400, 'invalid_request', [`${path}/query`, { json: write }]);
    });

    test('ends in the server when its caller leaves, and others go on', async () => {
      const abort = new AbortController();
      const headers = { 'x-api-key': user.key ?? '', 'content-type': 'application/json' };
      const body = JSON.stringify({ ...slow, read_only: false });
      const { signal } = abort;
      const gone = fetch(`${cloud.api}${path}/query`, { method: 'POST', headers, body, signal });
      await begun();
      abort.abort();
      await assert.rejects(gone, { name: 'AbortError' });
      await eventually('it is not listed any more', async () => (await running()).length === 0);
      await eventually('nothing of it is left in the server', isGone);
      await query({ ...next, read_only: false });
      // Clients can disconnect repeatedly: this is not an error of the cloud, and must not fill its log.
      assert.doesNotMatch(cloud.output, /AbortError/);
    });
  });
}
