/** Plans of statements, in each available engine: in one format, with nested steps. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { DATABASES } from './databases-kit.ts';

let cloud: CloudProcess;
let user: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start();
  const anyone = await CheckedClient.open(cloud.api);
  user = anyone.as((await anyone.register()).api_key);
});
after(() => cloud.stop());

const isHere = (program: string) => globSync(`build/programs/${program}-*/usr`).length > 0;

interface Step {
  readonly depth: number;
  readonly operation: string;
  readonly on: string | null;
  readonly estimated_rows: number | null;
  readonly actual_rows: number | null;
  readonly time_ms: number | null;
}
interface Case {
  readonly engine: string;
  readonly skip: string | false;
  /** A step that reads all of `people`, and one that uses the index `by_name`. */
  readonly scan: Partial<Step>;
  readonly search: RegExp;
  readonly sort: RegExp;
  readonly measures: boolean;
}
const CASES: readonly Case[] = [
  {
    engine: 'sqlite',
    skip: false,
    scan: { operation: 'SCAN', on: 'people' },
    search: /SEARCH people .*by_name/,
    sort: /USE TEMP B-TREE FOR ORDER BY/,
    measures: false,
  },
  {
    engine: 'postgresql',
    skip: isHere('postgresql') ? false : NO_POSTGRESQL,
    scan: { operation: 'Seq Scan', on: 'people' },
    search: /Index(?: Only)? Scan people by_name|Bitmap Index Scan by_name/,
    sort: /Sort/,
    measures: true,
  },
  {
    engine: 'mysql',
    skip: isHere('mariadb') ? false : NO_MARIADB,
    scan: { operation: 'Full table scan', on: 'people' },
    search: /(?:Index lookup|Index range scan) people .*by_name/,
    sort: /Filesort/,
    measures: true,
  },
  {
    engine: 'mongodb',
    skip: false,
    scan: { operation: 'COLLSCAN', on: 'people' },
    search: /IXSCAN by_name/,
    sort: /SORT/,
    measures: true,
  },
];
const ROWS = 500;

for (const { engine, skip, scan, search, sort, measures } of CASES) {
  describe(`a plan in ${engine}`, { skip }, () => {
    let path: string;
    const isSql = engine !== 'mongodb';
    const all = isSql
      ? { statement: 'SELECT id FROM people ORDER BY age LIMIT 7' }
      : { command: { find: 'people', sort: { age: 1 }, limit: 7 } };
    const one = isSql
      ? { statement: `SELECT * FROM people WHERE name = 'P7'` }
      : { command: { find: 'people', filter: { name: 'P7' } } };
    const explain = (json: object) => user.expect(200, `${path}/query/explain`, { json });
    const text = (steps: readonly Step[]) =>
      steps.map((step) => JSON.stringify(Object.values(step))).join('\n');
    const words = (steps: readonly Step[]) => text(steps).replaceAll(/[",[\]{}:]|null|\d+(?=,)/g, ' ');

    before(async () => {
      const made = await user.expect(201, DATABASES, { json: { name: `plans-${engine}`, engine } });
      path = `${DATABASES}/${made.database_id}`;
      const run = (json: object) =>
        user.expect(200, `${path}/query`, { json: { ...json, read_only: false } });
      const people = Array.from({ length: ROWS }, (_, id) => ({ id, name: `P${id}`, age: id % 90 }));
      if (isSql) {
        await run({ statement: 'CREATE TABLE people (id int PRIMARY KEY, name varchar(90), age int)' });
        await run({ statement: 'CREATE INDEX by_name ON people (name)' });
        const rows = people.map(({ id, name, age }) => `(${id}, '${name}', ${age})`);
        await run({ statement: `INSERT INTO people VALUES ${rows.join(', ')}` });
        if (engine === 'postgresql') await run({ statement: 'ANALYZE people' });
      } else {
        await run({ command: { insert: 'people', documents: people } });
        const indexes = [{ key: { name: 1 }, name: 'by_name' }];
        await run({ command: { createIndexes: 'people', indexes } });
      }
    });

    test('has a step for what is read, beneath the steps that use it', async () => {
      const { steps, measured } = await explain(all);
      assert.equal(measured, false);
      assert.equal(steps[0].depth, 0, text(steps));
      for (const [at, step] of steps.entries())
        assert.ok(at === 0 || step.depth <= steps[at - 1].depth + 1, text(steps));
      const found: Step = steps.find((step: Step) => step.operation === scan.operation);
      assert.ok(found, text(steps));
      assert.equal(found.on, scan.on);
      assert.match(words(steps), sort);
      assert.ok(steps.every((step: Step) => step.actual_rows === null && step.time_ms === null));
    });

    test('names the index that is used', async () => {
      const { steps } = await explain(one);
      assert.match(words(steps).replaceAll(/ +/g, ' '), search, text(steps));
    });

    test('is measured by running the statement, which may only read', async () => {
      const { steps, measured } = await explain({ ...all, measure: true });
      assert.equal(measured, measures);
      const found = steps.find((step: Step) => step.operation === scan.operation);
      // The built-in MongoDB measures the whole statement.
      if (!isSql) return assert.equal(steps[0].actual_rows, 7, text(steps));
      assert.equal(found.actual_rows, measures ? ROWS : null, text(steps));
      const write = { statement: 'DELETE FROM people', measure: true };
      if (engine !== 'sqlite')
        await user.refused(400, 'query_failed', [`${path}/query/explain`, { json: write }]);
      const hidden = { statement: 'SELECT 1; DELETE FROM people' };
      await user.refused(400, 'query_failed', [`${path}/query/explain`, { json: hidden }]);
      const { rows } = await user.expect(200, `${path}/query`, {
        json: { statement: 'SELECT count(*) FROM people' },
      });
      assert.equal(Number(rows[0][0]), ROWS);
    });

    test('of a wrong statement is refused in the words of the engine', async () => {
      const wrong = isSql ? { statement: 'SELECT FROM FROM' } : { command: { nothing: 'people' } };
      await user.refused(400, 'query_failed', [`${path}/query/explain`, { json: wrong }]);
      const other = isSql ? { command: { find: 'people' } } : { statement: 'SELECT 1' };
      await user.refused(400, 'invalid_request', [`${path}/query/explain`, { json: other }]);
    });
  });
}
