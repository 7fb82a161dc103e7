/** Files that are not dumps of the engine: the error names the kind of file and the fix. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LoadFailed } from '../../databases/engine.ts';
import { ofEngine } from '../../databases/packings/other-files.ts';
import { ABOUT_ENGINES } from './all-engines.ts';

const MADE = {
  postgresql: [
    '--\n-- PostgreSQL database dump\n--\n',
    '--\n-- PostgreSQL database cluster dump\n',
    '\ufeff--\r\n-- PostgreSQL database dump\r\n',
    'PGDMP\x01\x0e',
  ],
  mysql: [
    '-- MySQL dump 10.13  Distrib 8.0.36\n',
    '-- MariaDB dump 10.19\n',
    '/*M!999999\\- enable the sandbox mode */ \n-- MariaDB dump 10.19-11.8\n',
  ],
  sqlite: ['PRAGMA foreign_keys=OFF;\nBEGIN', 'PRAGMA defer_foreign_keys=TRUE;\n', 'SQLite format 3\0'],
  mongodb: [Buffer.from([0x6d, 0xe2, 0x99, 0x81, 0])],
};
type Name = keyof typeof MADE;

async function read(engine: Name, content: string | Buffer, length = 7): Promise<string> {
  const bytes = Buffer.from(content as string);
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
  }
  const found: Uint8Array[] = [];
  for await (const piece of ofEngine(engine, pieces(), ABOUT_ENGINES)) found.push(piece);
  return Buffer.concat(found).toString('latin1');
}

const refused = (engine: Name, content: string | Buffer, why: RegExp) =>
  assert.rejects(read(engine, content), (error: Error) => {
    assert.ok(error instanceof LoadFailed, String(error));
    assert.match(error.message, why);
    return true;
  });

test('a dump of another engine is refused with the engine that loads it', async () => {
  for (const [of, dumps] of Object.entries(MADE))
    for (const engine of Object.keys(MADE) as Name[])
      for (const dump of dumps) {
        if (engine === of)
          assert.equal(await read(engine, dump), Buffer.from(dump as string).toString('latin1'));
        else
          await refused(
            engine,
            dump,
            new RegExp(`is a dump of .* cannot load it: create a database of the engine ${of}`),
          );
      }
});

test('what is no dump is said', async () => {
  await refused('mysql', '<!DOCTYPE html>\n<html>', /is a web page, not a dump/);
  await refused(
    'postgresql',
    'version https://git-lfs.github.com/spec/v1\n',
    /Git LFS pointer: .*git lfs pull/,
  );
  await refused('mysql', 'mysqldump: Got error: 1045: Access denied\n', /is the error message of a program/);
  for (const text of ['\ufeff[{"a":1}]', '{ "_id": 1 }'])
    await refused('mongodb', text, /is JSON, not a dump: import it into a table or collection/);
  await refused('mysql', '<?xml version="1.0"?>\n<mysqldump>', /is XML, .*without --xml/);
  await refused('mysql', Buffer.from('fe62696e00', 'hex'), /is a binary log/);
  const refusal =
    "mysqldump: Error: 'Access denied; you need the PROCESS privilege' when trying to dump tablespaces\n";
  await refused('mysql', refusal, /is the error message of a program/);
  assert.ok((await read('mysql', `${refusal}-- MySQL dump 10.13\n`)).startsWith(refusal));
  await refused('postgresql', 'USE [master]\nGO\n', /SQL Server/);
});

test('anything else passes, however long', async () => {
  for (const text of ['', 'SELECT 1;', '-- by hand\nCREATE TABLE t (a int);\n', 'x'.repeat(3000)])
    for (const length of [1, 1000]) assert.equal(await read('mysql', text, length), text);
});
