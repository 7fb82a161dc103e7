/** Lines of dumps from other servers, as they are sent to this one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LeftOut } from '../../../../databases/left-out.ts';
import { ForeignLines } from './foreign-lines.ts';

test('a mode of MySQL 8 alone is taken out of sql_mode, told once, and stays in data', () => {
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
