import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import fc from 'fast-check';
import { endsStatement, readSql } from './sql.ts';

const texts = (sql: string) => readSql(sql).map(({ text }) => text.trim());

test('statements end where SQLite ends them', () => {
  assert.deepEqual(texts('SELECT \';\'; SELECT ";" ;SELECT [;]; SELECT `;`'), [
    "SELECT ';';",
    'SELECT ";" ;',
    'SELECT [;];',
    'SELECT `;`',
  ]);
  assert.deepEqual(texts("SELECT 'it''s;' -- ; not here\n; /* nor; here */ ;; -- nothing"), [
    "SELECT 'it''s;' -- ; not here\n;",
  ]);
  const trigger = `CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN
    SELECT CASE WHEN 1 THEN 2 END; INSERT INTO b VALUES (1); END;`;
  assert.deepEqual(texts(`${trigger} SELECT 1`), [trigger, 'SELECT 1']);
  assert.deepEqual(texts(''), []);
  assert.deepEqual(texts("SELECT 'never closed; SELECT 1"), ["SELECT 'never closed; SELECT 1"]);
});

test('parameters have the numbers that SQLite gives them', () => {
  const paramsOf = (sql: string) => readSql(sql)[0]?.params;
  assert.deepEqual(paramsOf('SELECT ?, :a, ?5, @b, ?, :a, $c::d(e)'), [
    ...[null, ':a', undefined, undefined, '?5', '@b', null, '$c::d(e)'],
  ]);
  assert.deepEqual(paramsOf('SELECT \'?\', ":x", 1 -- ?\n'), []);
  const [first, second] = readSql('SELECT :a; SELECT ?, :a');
  assert.deepEqual([first?.params, second?.params], [[':a'], [null, ':a']]);
});

test('what may write is distinguished from what only reads', () => {
  const writes = (sql: string) => readSql(sql)[0]?.writes;
  for (const sql of [
    ...['SELECT 1', 'values (1)', 'WITH a AS (SELECT 1) SELECT * FROM a', 'EXPLAIN DELETE FROM a', 'BEGIN'],
    ...['COMMIT', 'ROLLBACK', 'SAVEPOINT a', 'PRAGMA table_info(a)', '/* x */ SELECT 1', "SELECT 'DELETE'"],
  ]) {
    assert.equal(writes(sql), false, sql);
  }
  for (const sql of [
    ...['INSERT INTO a VALUES (1)', 'replace into a values (1)', 'CREATE TABLE a (b)', 'BEGIN IMMEDIATE'],
    ...[
      'WITH a AS (SELECT 1) DELETE FROM b',
      'PRAGMA user_version = 3',
      'begin exclusive transaction',
      'what',
    ],
  ]) {
    assert.equal(writes(sql), true, sql);
  }
});

test('what a statement leaves in its connection is noticed', () => {
  const leaves = (sql: string) => readSql(sql)[0]?.leavesTrace;
  assert.equal(leaves('CREATE TEMP TABLE a (b)'), true);
  assert.equal(leaves('INSERT INTO temp.a VALUES (1)'), true);
  assert.equal(leaves('PRAGMA foreign_keys = OFF'), true);
  assert.equal(leaves('CREATE TABLE a (b)'), false);
});

test('no text is read otherwise than SQLite reads it', () => {
  const db = new DatabaseSync(':memory:');
  const word = fc.constantFrom(
    ...[
      'SELECT',
      '1',
      "'",
      '"',
      '`',
      '[',
      ']',
      ';',
      '--',
      '\n',
      '/*',
      '*/',
      '?',
      '?3',
      ':a',
      '$b',
      '@c',
      '(',
      ')',
    ],
    ...[' ', 'AS', 'x', ',', "''", 'é', 'VALUES', '1.5e3', "x'00'", ':', '::', 'SELECT :a, ?'],
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 14 }), (words) => {
      const sql = `SELECT ${words.join('')}`;
      const found = readSql(sql);
      for (const { text, params } of found) {
        assert.ok(sql.includes(text));
        let compiled: ReturnType<DatabaseSync['prepare']>;
        try {
          compiled = db.prepare(text);
        } catch {
          continue;
        }
        // It has exactly as many parameters as SQLite counts: SQLite refuses an extra value.
        const positional = params.filter((name) => name == null || name.startsWith('?'));
        const names = params.filter((name) => name != null && !name.startsWith('?'));
        const named = Object.fromEntries(names.map((name) => [name, 1]));
        compiled.all(named, ...positional.map(() => 1));
        assert.throws(() => compiled.all(named, ...positional.map(() => 1), 1), /out of range/, text);
      }
    }),
    { numRuns: 3000 },
  );
});

test('a literal may be as long as a call', () => {
  const literal = 'a'.repeat(16 * 2 ** 20);
  for (const quote of ["'", '"', '`'])
    assert.equal(readSql(`SELECT ${quote}${literal}${quote}; x`).length, 2);
});

test('a text ends a statement outside of strings, comments and bodies of triggers', () => {
  for (const text of [
    '',
    ';',
    'SELECT 1;',
    "SELECT ';';",
    'SELECT 1; -- more',
    'BEGIN; COMMIT;',
    'CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; END;',
  ])
    assert.equal(endsStatement(text), true, text);
  for (const text of [
    'SELECT 1',
    "SELECT 'a;",
    'SELECT "a;',
    '/* ; ',
    'SELECT 1; S',
    'CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1;',
  ])
    assert.equal(endsStatement(text), false, text);
});
