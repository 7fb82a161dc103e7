import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutArrows } from './json-arrows.ts';
import { OwnNames } from './own-names.ts';

const without = (...lines: string[]) => {
  const names = new OwnNames('shop');
  return lines.map((line, at) => names.without(line, at === 0)).join('');
};

test('the name of the own database goes where a table or program is named, and stays before columns', () => {
  const cases = [
    ['CREATE TABLE `shop`.`t` (a int);', 'CREATE TABLE `t` (a int);'],
    ['DROP TABLE IF EXISTS shop.t, shop . u;', 'DROP TABLE IF EXISTS t, u;'],
    ['RENAME TABLE shop.a TO shop.b, shop.c TO shop.d;', 'RENAME TABLE a TO b, c TO d;'],
    ['CREATE INDEX i ON shop.t (a);', 'CREATE INDEX i ON t (a);'],
    ['select shop.id, shop.t.a from shop.shop join shop.t', 'select shop.id, t.a from shop join t'],
    [
      'from t join x on shop.id = t.id, shop.u where shop.f(shop.x) > 0',
      'from t join x on shop.id = t.id, u where f(shop.x) > 0',
    ],
    [
      'VALUES (\'shop.t\', "from shop.t") -- from shop.t',
      'VALUES (\'shop.t\', "from shop.t") -- from shop.t',
    ],
    [
      'CREATE TRIGGER shop.x BEFORE INSERT ON shop.t FOR EACH ROW',
      'CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW',
    ],
    [
      'id int DEFAULT nextval(`shop`.`s`), FOREIGN KEY (a) REFERENCES shop.t (a)',
      'id int DEFAULT nextval(`s`), FOREIGN KEY (a) REFERENCES t (a)',
    ],
    ['select 1 from workshop.t, `shop2`.t, SHOP.t', 'select 1 from workshop.t, `shop2`.t, SHOP.t'],
  ] as const;
  for (const [given, wanted] of cases) assert.equal(without(given), wanted);
  assert.equal(
    without('INSERT INTO\n', 'shop.t SELECT a FROM\n', 'shop.u;'),
    'INSERT INTO\nt SELECT a FROM\nu;',
  );
});

test("MySQL's operators for JSON become its functions, outside of texts", () => {
  const { text, replaced } = withoutArrows(
    "SELECT t.`j` ->> '$.a', j->\"$.b\", 'j->>''$.c''', a -> b FROM t",
  );
  assert.equal(
    text,
    "SELECT json_unquote(json_extract(t.`j`,'$.a')), json_extract(j,\"$.b\"), 'j->>''$.c''', a -> b FROM t",
  );
  assert.deepEqual(replaced, ["t.`j`->>'$.a'", 'j->"$.b"']);
});
