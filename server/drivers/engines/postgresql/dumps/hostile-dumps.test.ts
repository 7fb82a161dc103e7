/** Dumps that are made to take long: all users share the process that reads them. */
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describe, test } from 'node:test';
import { LeftOut } from '../../../../databases/left-out.ts';
import { assertLinear } from '../../../../testing/hostile-text.ts';
import { DumpFilter } from './dump-filters.ts';
import { RefusedStatements } from './refused-statements.ts';

/** A statement beyond this size passes without inspection: many of them count. */
const MOST = 60_000;

const facts = {
  version: '15.4',
  roles: new Set(['me']),
  owners: new Set(['me']),
  settings: new Map(),
  languages: new Set(['sql', 'plpgsql']),
  types: new Set(['integer', 'text']),
  installed: new Set<string>(),
  extensions: new Set<string>(),
  functions: new Set<string>(),
  accessMethods: new Set(['heap', 'btree']),
  schemas: new Set(['public']),
  collations: new Set(Array.from({ length: 1000 }, (_, at) => `xx_X${at}.utf8`)),
};
const take = (text: string) => {
  const lenient = { refused: new RefusedStatements(facts), leftOut: new LeftOut(), hasLines: true };
  const nowhere = new Writable({ write: (_piece, _encoding, done) => done() });
  return pipeline(Readable.from([Buffer.from(text)]), new DumpFilter({ key: 'k', lenient }), nowhere);
};
const names = (size: number, name: (at: number) => string) => {
  let text = '';
  for (let at = 0; text.length < size; at++) text += name(at);
  return text;
};

const STATEMENTS: Readonly<Record<string, (size: number) => string>> = {
  'dollars within names': (size) => `CREATE VIEW v AS SELECT ${names(size, (at) => `x$a${at}$,`)}1;\n`,
  casts: (size) => `CREATE CAST (${names(size, () => 'a AS ')}a);\n`,
  'options of a collation': (size) =>
    `CREATE COLLATION c ${names(size, () => '(')}${names(size, () => ')')};\n`,
  'generated columns': (size) =>
    `CREATE TABLE t (\n    a int ${names(size, () => ' GENERATED ALWAYS AS (a)')} x\n);\n`,
  'collations of columns': (size) =>
    `CREATE TABLE t (${names(size, (at) => `a text COLLATE "de_DE.x${at}",`)}b int);\n`,
};

describe('a dump is read in a time that grows with its length:', () => {
  for (const [name, statement] of Object.entries(STATEMENTS))
    test(name, () => assertLinear((size) => statement((size * MOST) / 240_000), take));
});
