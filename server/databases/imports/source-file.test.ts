/** Files of rows as people have them: packed, or of a kind that is no file of rows. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { LoadFailed } from '../engine.ts';
import { sourceFile } from './source-file.ts';

async function* unbounded(layer: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* layer;
}

async function read(content: string | Buffer, length = 100): Promise<string> {
  const bytes = Buffer.from(content as string);
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
  }
  const found: Uint8Array[] = [];
  for await (const piece of sourceFile(pieces(), unbounded)) found.push(piece);
  return Buffer.concat(found).toString();
}

/** A stored file of a zip archive, whose index is not read. */
function zipOf(name: string, content: string): Buffer {
  const head = Buffer.alloc(30);
  head.writeUInt32LE(0x04034b50);
  head.writeUInt16LE(name.length, 26);
  head.writeUInt32LE(content.length, 18);
  return Buffer.concat([head, Buffer.from(name + content), Buffer.alloc(300)]);
}

test('rows are read as they are, and unpacked', async () => {
  const csv = `id,name\n${'1,ada\n'.repeat(500)}`;
  for (const bytes of [Buffer.from(csv), gzipSync(csv), zstdCompressSync(csv), gzipSync(gzipSync(csv))])
    for (const length of [1, 1000]) assert.equal(await read(bytes, length), csv);
  for (const text of ['', 'a', '-1,2\n', 'create,insert\n', '<a>,b\n', '[1]'])
    assert.equal(await read(text), text);
  const tar = execFileSync('tar', ['-cf', '-', '-C', import.meta.dirname, 'source-file.test.ts']);
  assert.ok((await read(gzipSync(tar))).startsWith('/** Files of rows'));
});

test('files of other kinds say what they are, and what to do', async () => {
  for (const [content, why] of [
    [zipOf('[Content_Types].xml', '<Types/>'), /is a workbook of Excel, not CSV: save it as CSV/],
    [zipOf('mimetype', 'application/vnd.oasis.opendocument.spreadsheet'), /is a document of LibreOffice/],
    [Buffer.from('d0cf11e0a1b11ae1', 'hex'), /is a workbook of Excel/],
    [`PAR1${'\x15'.repeat(300)}`, /is a Parquet file/],
    ['SQLite format 3\0', /is a database, not rows: load it/],
    ['\ufeffCREATE TABLE t (a int);\nINSERT INTO t VALUES (1);\n', /is SQL, not rows: load it/],
    [gzipSync('-- MySQL dump 10.13\n'), /is SQL, not rows/],
    ['--\n-- PostgreSQL database dump\n', /is SQL, not rows/],
    ['<!DOCTYPE html>\n<p>', /is a web page/],
    [gzipSync('a,b\n'.repeat(5000)).subarray(0, 60), /damaged or cut off: gzip cannot unpack it/],
  ] as const)
    await assert.rejects(read(content), (error: Error) => {
      assert.ok(error instanceof LoadFailed, String(error));
      assert.match(error.message, why);
      return true;
    });
});
