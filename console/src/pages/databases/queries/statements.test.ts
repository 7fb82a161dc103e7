import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Grammar } from './grammar.ts';
import { statementsOf } from './statements.ts';

const textsOf = (grammar: Grammar, text: string) => statementsOf(grammar, text).map((one) => one.text);

test('statements end at a semicolon, but not in quotes, comments and bodies', () => {
  const quoted = `SELECT ';', ";" -- ;\n /* ; */`;
  for (const grammar of ['standard', 'sqlite', 'postgresql', 'mysql'] as const) {
    assert.deepEqual(textsOf(grammar, `${quoted}; ;\n-- only this;\n; SELECT 'it''s;'`), [
      quoted,
      "SELECT 'it''s;'",
    ]);
    assert.deepEqual(textsOf(grammar, 'BEGIN; SELECT 1; END'), ['BEGIN', 'SELECT 1', 'END']);
  }
  const trigger = `CREATE TRIGGER t AFTER INSERT ON a BEGIN
    UPDATE a SET b = CASE WHEN c THEN 1 ELSE 2 END; DELETE FROM d; END`;
  assert.deepEqual(textsOf('sqlite', `${trigger}; SELECT 1`), [trigger, 'SELECT 1']);
  const procedure =
    'CREATE PROCEDURE p() BEGIN IF 1 THEN SELECT 1; END IF; CASE 1 WHEN 1 THEN DO 1; END CASE; END';
  assert.deepEqual(textsOf('mysql', `${procedure};\nSELECT 'a\\';b'`), [procedure, "SELECT 'a\\';b'"]);
  const body = 'DO $x$ BEGIN PERFORM 1; END $x$';
  assert.deepEqual(textsOf('postgresql', `${body}; SELECT E'\\';', '\\';`), [body, "SELECT E'\\';', '\\'"]);
  assert.deepEqual(textsOf('sqlite', 'SELECT [a;b] FROM `c;d`'), ['SELECT [a;b] FROM `c;d`']);
});

test('commands for documents end with their object', () => {
  const text = ' { "find": "a}" , "filter": {} }\n{ "ping": 1 } x';
  assert.deepEqual(statementsOf('documents', text), [
    { text: '{ "find": "a}" , "filter": {} }', from: 1 },
    { text: '{ "ping": 1 }', from: 33 },
    { text: 'x', from: 47 },
  ]);
});
