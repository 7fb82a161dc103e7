/** Lines of dumps from other servers, as they are sent to this one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LeftOut } from '../../../../databases/left-out.ts';
import { ForeignLines } from './foreign-lines.ts';

/** Alters single lines, each of which is line 7. */
function foreignLines() {
  const leftOut = new LeftOut();
  const lines = new ForeignLines({
    leftOut,
    collations: new Set(),
    hasUuidVersions: false,
    absentFunctions: new Set(),
    databases: new Set(),
    enforcedEngine: null,
  });
  const altered = (text: string) => lines.altered(`${text}\n`, { line: 7, isFirst: true });
  return { leftOut, altered };
}

test('a mode of MySQL 8 alone is taken out of sql_mode, told once, and stays in data', () => {
  const { leftOut, altered } = foreignLines();
  for (const [modes, kept] of [
    ['STRICT_TRANS_TABLES,TIME_TRUNCATE_FRACTIONAL', 'STRICT_TRANS_TABLES'],
    ['TIME_TRUNCATE_FRACTIONAL,ANSI', 'ANSI'],
    ['ANSI,TIME_TRUNCATE_FRACTIONAL,NO_ENGINE_SUBSTITUTION', 'ANSI,NO_ENGINE_SUBSTITUTION'],
    ['TIME_TRUNCATE_FRACTIONAL', ''],
    ['ANSI', 'ANSI'],
  ])
    assert.equal(
      altered(`/*!50003 SET sql_mode              = '${modes}' */ ;`),
      `/*!50003 SET sql_mode              = '${kept}' */ ;\n`,
    );
  assert.deepEqual(
    leftOut.notes.map(({ line, text }) => [line, text]),
    [[7, 'TIME_TRUNCATE_FRACTIONAL']],
  );
  const row = "INSERT INTO `t` VALUES ('SET sql_mode = TIME_TRUNCATE_FRACTIONAL');";
  assert.equal(altered(row), `${row}\n`);
});

test('locks of a whole server are left out, and told', () => {
  const { leftOut, altered } = foreignLines();
  for (const text of [
    'LOCK INSTANCE FOR BACKUP;',
    'UNLOCK INSTANCE;',
    'BACKUP STAGE START;',
    'BACKUP UNLOCK;',
  ])
    assert.equal(altered(text), null, text);
  assert.equal(leftOut.count, 4);
  for (const text of ['LOCK TABLES `instance` WRITE;', 'UNLOCK TABLES;'])
    assert.equal(altered(text), `${text}\n`);
});

test('the place of a table is left out of a statement in one line, and stays in its texts', () => {
  const { leftOut, altered } = foreignLines();
  const table = "CREATE TABLE t (a int COMMENT ') ENGINE=x TABLESPACE=y')";
  for (const place of [' TABLESPACE=`ts1`', ' TABLESPACE ts1 STORAGE DISK', ' TABLESPACE = ts1'])
    assert.equal(altered(`${table} ENGINE=InnoDB${place};`), `${table} ENGINE=InnoDB;\n`);
  assert.equal(leftOut.count, 3);
  assert.equal(altered(`${table};`), `${table};\n`);
  const hostile = `CREATE TABLE t (${') ENGINE'.repeat(200_000)}(`;
  assert.equal(altered(hostile), `${hostile}\n`);
});
