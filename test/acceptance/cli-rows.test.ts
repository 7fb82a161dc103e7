/** Rows of tables and documents of collections, with the client. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { CliUser } from './cli-kit.ts';
import { DATABASES, run } from './databases-kit.ts';

let cloud: CloudProcess;
let user: CliUser & { readonly key: string };
let api: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start();
  user = await CliUser.signedIn(cloud.api);
  api = (await CheckedClient.open(cloud.api)).as(user.key);
});
after(async () => {
  user?.remove();
  await cloud?.stop();
});

const linesOf = async (args: readonly string[]): Promise<Record<string, unknown>[]> => {
  const text = await user.ok(args);
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
};
const ESCAPE = '\u001b]0;owned\u0007';

describe('rows of a table', () => {
  const rows = (...more: string[]) => ['db', 'rows', 'shop', 'goods', ...more];
  const ids = async (...more: string[]) => (await linesOf(rows('--json', ...more))).map(({ id }) => id);
  before(async () => {
    const { database_id: id } = await api.expect(201, DATABASES, { json: { name: 'shop' } });
    const path = `${DATABASES}/${id}`;
    await run(
      api,
      path,
      'CREATE TABLE goods (id INTEGER PRIMARY KEY, name TEXT, price REAL, note TEXT, bytes BLOB, "a=b" TEXT)',
    );
    await run(
      api,
      path,
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
       INSERT INTO goods SELECT i, 'name ' || i, i * 0.5, CASE WHEN i % 2 = 0 THEN 'even' END, NULL, 'x' FROM n`,
    );
    await run(api, path, `UPDATE goods SET name = '=1+1, "q"', note = '', bytes = x'00ff' WHERE id = 1`);
    await run(api, path, `UPDATE goods SET name = '${ESCAPE}', "a=b" = 'odd' WHERE id = 2`);
    await run(api, path, 'CREATE TABLE empty (id INTEGER PRIMARY KEY)');
  });

  test('come filtered, sorted, and as many as are asked for, over pages', async () => {
    assert.equal((await ids()).length, 100);
    assert.deepEqual(
      await ids('--limit', '2400'),
      Array.from({ length: 2400 }, (_, i) => i + 1),
    );
    assert.deepEqual(await ids('--limit', '3000', '--skip', '2498'), [2499, 2500]);
    assert.deepEqual(await ids('--filter', 'price >= 1249', '--sort', 'price desc'), [2500, 2499, 2498]);
    assert.deepEqual(await ids('--filter', 'price>1249.5'), [2500]);
    assert.deepEqual(await ids('--filter', 'id <= 4', '--filter', 'note is null'), [3]);
    assert.deepEqual(await ids('--filter', 'id <= 4', '--filter', 'note is not null'), [1, 2, 4]);
    assert.deepEqual(await ids('--filter', 'name contains 250', '--sort', 'id'), [250, 1250, 2250, 2500]);
    assert.deepEqual(await ids('--filter', 'name starts_with name 249', '--limit', '2'), [249, 2490]);
    assert.deepEqual(await ids('--filter', 'note='), [1], 'empty text');
    assert.deepEqual(
      await ids('--filter', '{"column": "a=b", "operator": "eq", "value": "odd"}', '--sort', 'note'),
      [2],
    );
    const { stderr } = await user.run(rows('--limit', '3'));
    assert.match(stderr, /^3 rows shown; use --limit and --skip to see more\n$/);
    assert.equal((await user.run(rows('--filter', 'id < 4'))).stderr, '');
  });

  test('as a table, CSV and JSON, where nothing is changed and nothing moves the cursor', async () => {
    const table = await user.ok(rows('--limit', '2'));
    assert.match(table, /^id +name +price +note +bytes +a=b\n 1 +=1\+1, "q" +0\.5 +\{"base64":"AP8="\} +x\n/);
    assert.match(table, /\\x1b\]0;owned\\x07/);
    const csv = await user.ok(rows('--csv', '--filter', 'id <= 2', '--limit', '5'));
    assert.equal(
      csv,
      `id,name,price,note,bytes,a=b\r\n1,"=1+1, ""q""",0.5,"",\\x00ff,x\r\n2,${ESCAPE},1,even,,odd\r\n`,
    );
    assert.equal(await user.ok(['db', 'rows', 'shop', 'empty', '--csv']), 'id\r\n');
    assert.equal(await user.ok(['db', 'rows', 'shop', 'empty', '--json']), '');
    const exported = await user.ok(['db', 'export', 'shop', 'goods']);
    assert.equal(exported.slice(0, csv.length), csv, 'as the export writes them');
    await user.fails(2, rows('--csv', '--json'));
  });

  test('what is wrong is said in words', async () => {
    assert.match(await user.fails(2, rows('--filter', 'price')), /price is not a condition\n +Examples: /);
    assert.match(await user.fails(1, rows('--filter', 'cost > 1')), /goods has no column cost/);
    assert.match(await user.fails(1, rows('--sort', 'cost')), /goods has no column cost/);
    assert.match(await user.fails(1, ['db', 'rows', 'shop', 'bads']), /there is no bads/);
    await user.fails(5, ['db', 'rows', 'store', 'goods']);
    await user.fails(2, rows('--limit', '0'));
    assert.match(await user.fails(2, ['db', 'documents', 'shop', 'goods']), /cloudlet db rows shop/);
  });

  test('are added, changed and deleted; one that differs by now is refused', async () => {
    const row = { id: 3001, name: 'tea', price: 2 };
    const add = (...given: string[]) => ['db', 'row-add', 'shop', 'goods', ...given];
    assert.match(
      await user.ok(add(JSON.stringify(row), '--dry-run')),
      /^INSERT INTO .*"goods" .* -- \[3001,/,
    );
    assert.deepEqual(await ids('--filter', 'id > 3000'), []);
    writeFileSync(join(user.home, 'more.json'), JSON.stringify([{ id: 3002 }, { id: 3003 }]));
    assert.equal(await user.ok(add(JSON.stringify(row), '@more.json')), '3 rows inserted\n');
    const twice = await user.fails(1, add('{"id": 3004}', '{"id": 3002}'));
    assert.match(twice, /UNIQUE|unique/);
    assert.deepEqual(await ids('--filter', 'id > 3000'), [3001, 3002, 3003], 'all or none');

    const change = (old: object, to: object) => [
      ...['db', 'row-change', 'shop', 'goods', JSON.stringify(old), JSON.stringify(to)],
    ];
    const [read] = await linesOf(rows('--json', '--filter', 'id = 3001'));
    assert.ok(read);
    assert.equal(await user.ok(change(read, { price: 3 })), '1 row changed\n');
    const late = await user.fails(6, change(read, { price: 4 }));
    assert.match(late, /changed/);
    assert.equal(await user.ok(change({ id: 3001 }, { price: 4 })), '1 row changed\n');
    const [after] = await linesOf(rows('--json', '--filter', 'id = 3001'));
    assert.deepEqual([after?.price, after?.name], [4, 'tea']);

    const remove = (...old: object[]) => [
      'db',
      'row-rm',
      'shop',
      'goods',
      ...old.map((one) => JSON.stringify(one)),
    ];
    assert.match(await user.fails(2, remove({ id: 3001 })), /nothing was deleted/);
    await user.fails(6, [...remove({ id: 3002 }, read), '--yes']);
    assert.equal(
      await user.ok([...remove({ id: 3001 }, { id: 3002 }, { id: 3003 }), '-y']),
      '3 rows deleted\n',
    );
    assert.deepEqual(await ids('--filter', 'id > 3000'), []);
    assert.match(
      await user.fails(2, add('{"id": 9007199254740993}')),
      /cannot be written exactly .*\n +Write the number as text/,
    );
    assert.equal(await user.ok(add('{"id": "9007199254740993"}')), '1 row inserted\n');
    assert.deepEqual(await ids('--filter', 'id = 9007199254740993'), ['9007199254740993']);
    assert.match(await user.fails(2, add('[1]')), /ROW is not a JSON object/);
    assert.match(await user.fails(2, add('{id: 1}')), /ROW is not JSON/);
  });
});

describe('documents of a collection', () => {
  const documents = (...more: string[]) => linesOf(['db', 'documents', 'notes', 'items', ...more]);
  const idsOf = async (...more: string[]) => (await documents(...more)).map(({ _id }) => _id);
  before(async () => {
    await user.ok(['db', 'create', 'notes', '--engine', 'mongodb']);
    const all = Array.from({ length: 1500 }, (_, n) => ({
      _id: n,
      n: { $numberLong: String(n) },
      word: `w${n}`,
    }));
    writeFileSync(join(user.home, 'items.json'), JSON.stringify(all));
    await user.ok(['db', 'import', 'notes', 'items.json']);
    await user.ok(['db', 'row-add', 'notes', 'items', '{"_id": "text", "zip": "5", "inner": {"a": 5}}']);
  });

  test('come as Extended JSON with their types, by conditions that have types too', async () => {
    assert.equal((await documents()).length, 100);
    assert.equal((await idsOf('--limit', '1500')).at(-1), 1499);
    assert.equal((await idsOf('--limit', '5000')).at(-1), 'text');
    assert.deepEqual(await documents('--filter', 'n = 7'), [{ _id: 7, n: { $numberLong: '7' }, word: 'w7' }]);
    assert.deepEqual(await idsOf('--filter', 'zip = "5"'), ['text']);
    assert.deepEqual(await idsOf('--filter', 'zip = 5'), []);
    assert.deepEqual(await idsOf('--filter', 'inner.a = 5'), ['text']);
    assert.deepEqual(
      await idsOf('--match', '{"n": {"$gte": {"$numberLong": "1498"}}}', '--sort', 'n desc'),
      [1499, 1498],
    );
    assert.deepEqual(await idsOf('--filter', 'word starts_with w149', '--skip', '9'), [1498, 1499]);
    assert.match(
      await user.fails(2, ['db', 'documents', 'notes', 'items', '--match', '[]']),
      /not a JSON object/,
    );
    assert.match(await user.fails(2, ['db', 'rows', 'notes', 'items']), /cloudlet db documents notes/);
  });

  test('are changed as wholes; one that differs by now is refused', async () => {
    const [read] = await documents('--filter', '_id = 3');
    const change = ['db', 'row-change', 'notes', 'items', JSON.stringify(read)];
    assert.match(await user.ok([...change, '{"_id": 3, "n": 4}', '--dry-run']), /^\{"update":"items"/);
    assert.equal(await user.ok([...change, '{"_id": 3, "n": 4}']), '1 row changed\n');
    await user.fails(6, [...change, '{"_id": 3, "n": 5}']);
    const [now] = await documents('--filter', '_id = 3');
    assert.deepEqual(now, { _id: 3, n: 4 });
    const remove = ['db', 'row-rm', 'notes', 'items', '--yes'];
    await user.fails(6, [...remove, JSON.stringify(read)]);
    assert.equal(await user.ok([...remove, JSON.stringify(now)]), '1 row deleted\n');
    assert.deepEqual(await idsOf('--filter', '_id = 3'), []);
  });
});
