import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Box, diagramOf, heightOf, type SchemaTable } from './layout.ts';

const column = (name: string, isKey = false) => ({
  name,
  type: 'int',
  primary_key: isKey,
});
const table = (name: string, refers: readonly string[] = [], columns = 2): SchemaTable => ({
  name,
  schema: null,
  columns: [
    ...Array.from({ length: columns }, (_, at) => column(`c${at}`)),
    column('id', true),
    ...refers.map((one) => column(`${one}_id`)),
  ],
  foreign_keys: refers.map((one) => ({
    columns: [`${one}_id`],
    references: { table: one, columns: ['id'] },
  })),
});
const overlap = (one: Box, other: Box) =>
  one.x === other.x && one.y < other.y + other.height && other.y < one.y + one.height;

test('a table is right of those that it refers to, and circles end', () => {
  const { boxes, references } = diagramOf([
    table('lines', ['orders', 'goods']),
    table('orders', ['people']),
    table('people', ['people']),
    table('goods'),
    table('one', ['two']),
    table('two', ['one']),
    table('alone', ['missing']),
  ]);
  const x = Object.fromEntries(boxes.map((box) => [box.table.name, box.x]));
  assert.ok((x.people as number) < (x.orders as number) && (x.orders as number) < (x.lines as number));
  assert.ok(boxes.every((box) => box.x <= (x.alone as number)));
  assert.equal(references.length, 6);
});

test('200 tables do not lie on one another, and wide ones show their keys', () => {
  const tables = Array.from({ length: 200 }, (_, at) => table(`t${at}`, at % 3 ? [`t${at - 1}`] : [], at));
  const { boxes, width, height } = diagramOf(tables);
  for (const [at, one] of boxes.entries())
    assert.ok(!boxes.slice(at + 1).some((other) => overlap(one, other)));
  assert.ok(width > 0 && height < 3000);
  const last = boxes.find(({ table: { name } }) => name === 't199') as Box;
  assert.deepEqual(
    last.lines.slice(0, 2).map(({ name, key }) => [name, key]),
    [
      ['id', 'primary'],
      ['t198_id', 'foreign'],
    ],
  );
  assert.equal(last.lines.length + last.more, 201);
  assert.ok(heightOf(last, 'id') > last.y && heightOf(last, 'c198') === last.y + 14);
});
