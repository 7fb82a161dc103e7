/** Dumps that are made to take long, or much memory: all users share the process that reads them. */
import assert from 'node:assert/strict';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { LeftOut } from '../../../../databases/left-out.ts';
import { assertLinear } from '../../../../testing/hostile-text.ts';
import { DumpLines } from './dump-lines.ts';
import { TriedPrograms } from './tried-programs.ts';

const lines = () => {
  const leftOut = new LeftOut();
  return new DumpLines({
    lenient: {
      leftOut,
      collations: new Set(['utf8mb4_bin']),
      hasUuidVersions: false,
      absentFunctions: new Set(['json_pretty']),
      databases: new Set(),
      enforcedEngine: 'InnoDB',
      tried: new TriedPrograms(leftOut),
    },
  });
};
const nowhere = () => new Writable({ write: (_piece, _encoding, done) => done() });
const take = (text: string) =>
  pipeline(Readable.from([Buffer.from(`-- MySQL dump 10\n${text}-- Dump completed\n`)]), lines(), nowhere());

const times = (text: string, size: number) => text.repeat(size / text.length);
const table = (element: string) => `CREATE TABLE \`t\` (\n${element}\n) ENGINE=InnoDB;\n`;
const options = (text: string) => `CREATE TABLE \`t\` (\n  \`a\` int\n) ENGINE=InnoDB${text};\n`;

const STATEMENTS: Readonly<Record<string, (size: number) => string>> = {
  'quotes of a view after backslashes': (size) => `CREATE VIEW v AS SELECT 1 ${times("\\'", size)};\n`,
  'quotes of a line after backslashes': (size) => `ALTER TABLE t ENGINE=InnoDB ${times("\\'", size)};\n`,
  'blanks before a partition': (size) => `CREATE TABLE t (a int)\n${times(' ', size)}uuid\n;\n`,
  'blanks after a variable': (size) => `SET a=@b${times(' ', size)}x;\n`,
  'comments for MySQL 8 without an end': (size) => `ALTER TABLE t ${times('/*!80000 ', size)}\n;\n`,
  'generated columns': (size) => table(`  \`a\` int ${times('GENERATED ALWAYS AS (', size)}`),
  checks: (size) => table(`  CONSTRAINT \`c\`${times(' CHECK ', size)}x`),
  'options of a table': (size) => options(times(" ENCRYPTION='Y'", size)),
  'comments of a table': (size) => options(times(" COMMENT='", size)),
  'columns of a table': (size) => `CREATE TABLE t (${times('a,', size)}b json DEFAULT (json_pretty(1)));\n`,
  'defaults of a column': (size) => `CREATE TABLE t (a int ${times('DEFAULT (json_pretty(1)) ', size)});\n`,
  'lists of an index': (size) => `CREATE TABLE t (KEY (${times('a (1),', size)}b));\n`,
  'indexes within an index': (size) => `ALTER TABLE t ADD KEY (${times('a KEY (1),', size)}b);\n`,
  'blanks of an index': (size) => `ALTER TABLE t ADD KEY${times(' ', size)}a${times(' ', size)}b;\n`,
  'operators for JSON': (size) => `CREATE VIEW v AS SELECT ${times("a->'b' ", size)};\n`,
  'names before an operator': (size) => `CREATE VIEW v AS SELECT ${times('a.', size)}a->'b';\n`,
  'operators without a path': (size) => `CREATE VIEW v AS SELECT ${times('a->', size)};\n`,
  'operators before quotes': (size) => `CREATE VIEW v AS SELECT ${times("a->' ", size)};\n`,
  'members of nothing': (size) => `CREATE VIEW v AS SELECT ${times('member ', size)};\n`,
  'versions before a program': (size) => `CREATE ${times('/*!5 ', size)}x;\n`,
  'definers before a program': (size) => `CREATE ${times(' DEFINER=', size)}x;\n`,
  'definers without blanks': (size) => `CREATE ${times('DEFINER=', size)}x;\n`,
  'blanks before a program': (size) => `CREATE ${times(' ', size)}x;\n`,
  'statements in a program': (size) => `CREATE PROCEDURE p() ${times("';' ", size)};\n`,
  'databases of a comment': (size) => `-- Host: ${times('Database: ', size)}x y\nSELECT 1;\n`,
  'names with their database': (size) => `USE shop;\nSELECT 1 FROM ${times('shop.', size)};\n`,
  'a list of tables with their database': (size) => `USE shop;\nSELECT 1 FROM ${times('shop.a,', size)};\n`,
  'blanks after the database': (size) => `USE shop;\nSELECT 1\nshop${times(' ', size)}shop;\n`,
  'parentheses after the database': (size) => `USE shop;\nSELECT shop.f${times('(', size)};\n`,
  'marks as the name of the database': (size) =>
    `USE \`${'-'.repeat(200)}\`;\nSELECT 1\n${times('-', size)};\n`,
  'quotes as the name of the database': (size) =>
    `USE \`${'``'.repeat(100)}\`;\nSELECT 1\n${times('`', size)};\n`,
  'a long name of the database': (size) =>
    `USE \`${times('-', size / 2)}\`;\nSELECT 1\n${times('-', size / 2)};\n`,
  'words before rows': (size) => `USE shop;\nINSERT ${times('a ', size)};\n`,
  'blanks before rows': (size) => `USE shop;\nINSERT INTO${times(' ', size)};\n`,
  'words of a change': (size) => `USE shop;\nUPDATE ${times('shop.a ', size)};\n`,
  'places of a table': (size) => options(times(' /*!50100 TABLESPACE `', size)),
  'places of a table by name': (size) => options(times(' TABLESPACE a STORAGE ', size)),
  'places of a column': (size) => table(`  \`a\` int${times(' /*!50606 STORAGE ', size)}`),
  'quotes before places of a column': (size) => table(`  \`a\` int /*!50606 ${times("'", size)}`),
  'forms of an index': (size) => table(`  KEY \`a\` (${times(') USING INVISIBLE', size)}`),
  'nested defaults': (size) =>
    `CREATE TABLE t (a int ${times('DEFAULT (', size * 0.9)}json_pretty(1)${')'.repeat(Math.floor(Math.floor(size * 0.9) / 9))});\n`,
};

describe('a dump is read in a time that grows with its length:', () => {
  for (const [name, statement] of Object.entries(STATEMENTS)) test(name, () => assertLinear(statement, take));
});

/** Bytes of the heap that pieces of a dump have left behind after the first ones. */
async function keptBytes(pieces: Iterable<string>, first: number): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const heapBytes = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  let [count, before, after] = [0, 0, 0];
  const counted = async function* () {
    yield Buffer.from('-- MySQL dump 10\n');
    for (const piece of pieces) {
      if (count++ === first) before = heapBytes();
      yield Buffer.from(piece);
    }
    after = heapBytes();
    yield Buffer.from('-- Dump completed\n');
  };
  await pipeline(Readable.from(counted()), lines(), nowhere());
  return after - before;
}

test('of views that others need, their names alone are kept in memory', async () => {
  const comment = 'x'.repeat(200_000);
  const views = function* () {
    for (let count = 0; count < 400; count++) {
      yield `CREATE OR REPLACE VIEW v${count} AS SELECT 1 /* ${comment} */;\n`;
      yield `SET @variable_number_${count}=1 /* ${comment} */;\n`;
    }
  };
  const bytes = await keptBytes(views(), 100);
  assert.ok(bytes < 10 * 2 ** 20, `${bytes}`);
});

test('of programs that are tried, a limited number is kept in memory', async () => {
  const programs = function* () {
    for (let count = 0; count < 100_000; count++)
      yield `CREATE PROCEDURE p${count}() SELECT '${'x'.repeat(300)}';\n`;
  };
  const bytes = await keptBytes(programs(), 100);
  assert.ok(bytes < 12 * 2 ** 20, `${bytes}`);
});

test('of open parentheses, a limited number is kept in memory', async () => {
  const nested = function* () {
    yield 'USE shop;\nSELECT 1\n';
    for (let count = 0; count < 100; count++) yield `shop.f ${'('.repeat(100_000)}\n`;
    yield ';\n';
  };
  const bytes = await keptBytes(nested(), 2);
  assert.ok(bytes < 10 * 2 ** 20, `${bytes}`);
});
