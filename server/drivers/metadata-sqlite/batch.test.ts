/** Packing and running: however commits are grouped, the results and errors are the same as one by one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import type { Increment, Statement } from '../../metadata/metadata.ts';
import { randomFrom } from '../../testing/random.ts';
import { type BatchMessage, packBatch, SqlNumbers } from './batch.ts';
import { type BatchOutcome, BatchRunner } from './batch-runner.ts';

type Commit = readonly Statement[];

const LIMIT = 100;

const item = (name: string, bytes: number): Statement => ({
  sql: 'INSERT INTO items (name, bytes, data) VALUES (?, ?, ?)',
  params: [name, bytes, Buffer.alloc(bytes, name)],
});
const tag: Statement = { sql: 'INSERT INTO tags (item) VALUES (?)', params: [{ rowIdOf: 0 }] };
const count = (box: string, bytes: number): Increment => ({
  sql: 'UPDATE boxes SET items = items + ?, bytes = bytes + ? WHERE name = ?',
  params: [1, bytes, box],
  expectChanges: 1,
  amounts: [0, 1],
});
const demand = (box: string): Increment => ({
  sql: `UPDATE boxes SET name = name WHERE name = ? AND bytes <= ${LIMIT}`,
  params: [box],
  expectChanges: 1,
  amounts: [],
});
const add = (name: string, box: string, bytes: number) => [
  item(name, bytes),
  tag,
  count(box, bytes),
  demand(box),
];

function makeFixture() {
  const database = new Database(':memory:');
  database.exec(`CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT UNIQUE, bytes INTEGER, data BLOB) STRICT;
    CREATE TABLE tags (item INTEGER REFERENCES items(id)) STRICT;
    CREATE TABLE boxes (name TEXT, items INTEGER, bytes INTEGER) STRICT;
    INSERT INTO boxes VALUES ('a', 0, 0), ('b', 0, 0)`);
  const runner = new BatchRunner(database);
  const numbers = new SqlNumbers();
  const pack = (commits: readonly Commit[], isolated: boolean) => packBatch(numbers, commits, { isolated });
  return {
    pack,
    run: (message: BatchMessage) => runner.run(message),
    /** As the writer does: together, and one by one after a refusal. */
    store: (commits: readonly Commit[]): BatchOutcome => {
      const outcome = runner.run(pack(commits, false)) ?? runner.run(pack(commits, true));
      return outcome ?? assert.fail('a batch that is stored isolated cannot be refused as a whole');
    },
    all: () => ['items', 'tags', 'boxes'].map((table) => database.prepare(`SELECT * FROM ${table}`).all()),
  };
}

test('what adds up stands once for all commits of its form, one by one when isolated', () => {
  const commits = [add('x', 'a', 10), add('y', 'a', 20), add('z', 'a', 30)];
  const { pack, run, all } = makeFixture();
  const together = pack(commits, false);
  assert.equal(together.tokens.filter((token) => token === 'a').length, 2, 'one count, one demand');
  assert.equal(pack(commits, true).tokens.filter((token) => token === 'a').length, 6);
  const outcome = run(together);
  assert.deepEqual(all()[2]?.[0], { name: 'a', items: 3, bytes: 60 });
  const changes = outcome?.results.filter((_, i) => i % 2 === 0);
  assert.deepEqual(changes, Array(12).fill(1), 'each commit is told of each of its statements');
});

test('only neighbours of one form are one group', () => {
  const tokens = (commits: readonly Commit[]) => makeFixture().pack(commits, false).tokens[0];
  assert.equal(tokens([add('x', 'a', 1), add('y', 'a', 1)]), 2);
  assert.equal(tokens([add('x', 'a', 1), add('y', 'b', 1)]), 1, 'another row is counted');
  assert.equal(tokens([add('x', 'a', 1), [item('y', 1)], add('z', 'a', 1)]), 1, 'another list');
  assert.equal(tokens([[count('a', 1)], [{ ...count('a', 1), expectChanges: 2 }]]), 1);
  assert.equal(tokens([[count('a', 1)], [{ ...count('a', 1), amounts: [1] }]]), 1);
  assert.equal(tokens([[count('a', 1)], [count('a', 0.5)]]), 1, 'no whole number');
});

test('a group that is refused stores nothing, and isolated only what the rule allows', () => {
  const { pack, run, store, all } = makeFixture();
  const commits = [60, 30, 20, 10].map((bytes, i) => add(`n${i}`, 'a', bytes));
  const before = all();
  assert.equal(run(pack(commits, false)), null);
  assert.deepEqual(all(), before);
  const { failures, results } = store(commits);
  assert.deepEqual(
    failures.map(({ commit, index, reason }) => [commit, index, reason]),
    [[2, 3, 'expectation']],
  );
  assert.equal(results.length, 3 * 4 * 2);
  assert.deepEqual(all()[2]?.[0], { name: 'a', items: 3, bytes: 100 });
});

test('amounts beyond 2^53 are exact', () => {
  const { store, all } = makeFixture();
  store([[count('a', Number.MAX_SAFE_INTEGER)], [count('a', 2)], [count('a', -Number.MAX_SAFE_INTEGER)]]);
  assert.deepEqual(all()[2]?.[0], { name: 'a', items: 3, bytes: 2 });
});

test('row ids are those of the commit itself, behind a statement for the whole group too', () => {
  const { pack, run, store, all } = makeFixture();
  const tagOf = (index: number): Statement => ({ sql: tag.sql, params: [{ rowIdOf: index }] });
  store(['x', 'y'].map((name) => [count('a', 1), item(name, 1), item(`${name}2`, 1), tagOf(1)]));
  assert.deepEqual(all()[1], [{ item: 1 }, { item: 3 }]);
  const ofSummed = ['z', 'w'].map((name) => [item(name, 1), count('a', 1), tagOf(1)]);
  assert.equal(run(pack(ofSummed, false)), null, 'there is none yet');
});

test('random histories end as they do one by one', () => {
  const random = randomFrom(12345);
  let refused = 0;
  for (let history = 0; history < 200; history++) {
    const [grouped, single] = [makeFixture(), makeFixture()];
    for (let batch = 0; batch < 4; batch++) {
      const commits = Array.from({ length: 1 + random(6) }, () => {
        const box = random(4) === 0 ? 'b' : 'a';
        const name = `n${random(60)}`;
        return random(5) === 0
          ? [item(name, 1), tag, count(box, random(30) - 15)]
          : add(name, box, random(15));
      });
      const { failures, results } = grouped.store(commits);
      const seen: [number[], string[]] = [[], []];
      for (const commit of commits) {
        const outcome = single.store([commit]);
        seen[0].push(...outcome.results);
        seen[1].push(...outcome.failures.map(({ index, reason }) => `${index} ${reason}`));
      }
      assert.deepEqual(
        failures.map(({ index, reason }) => `${index} ${reason}`),
        seen[1],
      );
      assert.deepEqual(
        results.filter((_, i) => i % 2 === 0),
        seen[0].filter((_, i) => i % 2 === 0),
      );
      refused += failures.length;
    }
    assert.deepEqual(grouped.all(), single.all());
  }
  assert.ok(refused > 200, `only ${refused} refusals`);
});
