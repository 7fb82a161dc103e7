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

const lines = () =>
  new DumpLines({
    lenient: {
      leftOut: new LeftOut(),
      collations: new Set(['utf8mb4_bin']),
      hasUuidVersions: false,
      absentFunctions: new Set(['json_pretty']),
      databases: new Set(),
      enforcedEngine: 'InnoDB',
    },
  });
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
  'nested defaults': (size) =>
    `CREATE TABLE t (a int ${times('DEFAULT (', size * 0.9)}json_pretty(1)${')'.repeat(Math.floor(Math.floor(size * 0.9) / 9))});\n`,
};

describe('a dump is read in a time that grows with its length:', () => {
  for (const [name, statement] of Object.entries(STATEMENTS)) test(name, () => assertLinear(statement, take));
});

test('of views that others need, their names alone are kept in memory', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const heapBytes = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const through = lines();
  const comment = 'x'.repeat(200_000);
  let [before, after] = [0, 0];
  const views = async function* () {
    for (let count = 0; count < 400; count++) {
      if (count === 50) before = heapBytes();
      yield Buffer.from(`CREATE OR REPLACE VIEW v${count} AS SELECT 1 /* ${comment} */;\n`);
      yield Buffer.from(`SET @variable_number_${count}=1 /* ${comment} */;\n`);
    }
    after = heapBytes();
  };
  await pipeline(Readable.from(views()), through, nowhere());
  assert.ok(after - before < 10 * 2 ** 20, `${before} → ${after}`);
});
