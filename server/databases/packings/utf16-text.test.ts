/** Text in UTF-16, the output of `pg_dump shop > shop.sql` in Windows PowerShell. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LoadFailed } from '../engine.ts';
import { inUtf8 } from './utf16-text.ts';

const TEXT = 'CREATE TABLE t (a int);\r\nINSERT INTO t VALUES (1);\r\n';

async function read(bytes: Buffer, length: number): Promise<Buffer> {
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
  }
  const found: Uint8Array[] = [];
  for await (const piece of inUtf8(pieces())) found.push(piece);
  return Buffer.concat(found);
}

test('text in UTF-16 of either order, with a mark or without, is read', async () => {
  for (const mark of ['\ufeff', '']) {
    const little = Buffer.from(mark + TEXT, 'utf16le');
    const big = Buffer.from(little).swap16();
    for (const bytes of [little, big])
      for (const length of [1, 3, 7, 1000]) assert.equal((await read(bytes, length)).toString(), TEXT);
  }
});

test('anything else passes as it is', async () => {
  for (const text of ['\ufeffSELECT 1;', 'é', '', 'x', 'SQLite format 3\0\x10\0', 'PGDMP\x01\x0e\0'])
    assert.equal((await read(Buffer.from(text), 3)).toString(), text);
});

test('text beyond ASCII, which PowerShell may have altered, is refused with its line', async () => {
  for (const text of [`${TEXT}-- \u00e9`, `${TEXT}\u00e9`, `${TEXT}${String.fromCharCode(0xd800)}`])
    await assert.rejects(read(Buffer.from(`\ufeff${text}`, 'utf16le'), 5), (error: Error) => {
      assert.ok(error instanceof LoadFailed);
      assert.match(error.message, /UTF-16.*in line 3: .*pg_dump -f .*--result-file.*sqlite3/);
      return true;
    });
});
