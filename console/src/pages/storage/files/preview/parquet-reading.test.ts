import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { type ParquetReason, ParquetRefusal, readParquet } from './parquet-reading.ts';

type Options = Parameters<typeof parquetWriteBuffer>[0];

const compressors = {
  ZSTD: (bytes: Uint8Array) => new Uint8Array(zstdCompressSync(bytes)),
  GZIP: (bytes: Uint8Array) => new Uint8Array(gzipSync(bytes)),
};

const written = (options: Options) => new Uint8Array(parquetWriteBuffer({ compressors, ...options }));

/** The table, and the requested bytes. */
async function tableOf(bytes: Uint8Array) {
  let readBytes = 0;
  const table = await readParquet({
    size: bytes.length,
    read: async (start, end) => {
      readBytes += end - start;
      return bytes.slice(start, end).buffer;
    },
  });
  return { ...table, readBytes };
}

const refuses = (bytes: Uint8Array, reason: ParquetReason) =>
  assert.rejects(tableOf(bytes), (error) => error instanceof ParquetRefusal && error.reason === reason);

const COLUMNS = [
  { name: 'id', data: [1, 2, 3], type: 'INT32' as const },
  { name: 'name', data: ['a', '<b>', 'ü'], type: 'STRING' as const },
  { name: 'big', data: [1n, 2n ** 60n, null], type: 'INT64' as const },
  { name: 'day', data: [new Date(0), null, new Date(86_400_000)], type: 'TIMESTAMP' as const },
  { name: 'more', data: [{ a: [1] }, null, 'x'], type: 'JSON' as const },
];

for (const codec of ['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'ZSTD'] as const) {
  test(`columns with types and rows, ${codec}`, async () => {
    const { columns, rows, rowCount, columnCount, shown } = await tableOf(
      written({ columnData: COLUMNS, codec }),
    );
    assert.deepEqual([rowCount, columnCount, shown], [3, 5, 5]);
    assert.deepEqual(
      columns.map(({ name, type }) => `${name} ${type}`),
      ['id int32', 'name string', 'big int64', 'day timestamp', 'more json'],
    );
    assert.deepEqual(rows, [
      ['1', 'a', '1', '1970-01-01T00:00:00.000Z', '{"a":[1]}'],
      ['2', '<b>', '1152921504606846976', '', ''],
      ['3', 'ü', '', '1970-01-02T00:00:00.000Z', 'x'],
    ]);
  });
}

test('of a long file the first rows and the end are read, not the rest', async () => {
  const data = Array.from({ length: 400_000 }, (_, at) => `row ${at} ${Math.sin(at)}`);
  const bytes = written({ columnData: [{ name: 'word', data }], rowGroupSize: 1000 });
  const { rows, rowCount, readBytes } = await tableOf(bytes);
  assert.deepEqual([rows.length, rowCount, rows[199]?.[0]], [200, 400_000, data[199]]);
  assert.ok(readBytes < bytes.length / 10, `${readBytes} of ${bytes.length}`);
});

test('of 10,000 columns a hundred are shown, and a thousand named', async () => {
  const columnData = Array.from({ length: 10_000 }, (_, at) => ({ name: `c${at}`, data: [at] }));
  const { columns, columnCount, shown, rows } = await tableOf(written({ columnData }));
  assert.deepEqual([columns.length, columnCount, shown, rows[0]?.length], [1000, 10_000, 100, 100]);
});

test('lists and structures are JSON', async () => {
  const columnData = [{ name: 'tags', data: [['a', 'b'], []] }];
  const schema: NonNullable<Options['schema']> = [
    { name: 'root', num_children: 1 },
    { name: 'tags', repetition_type: 'OPTIONAL', num_children: 1, converted_type: 'LIST' },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    { name: 'element', repetition_type: 'OPTIONAL', type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  ];
  const { columns, rows } = await tableOf(written({ columnData, schema }));
  assert.deepEqual([columns, rows], [[{ name: 'tags', type: 'list' }], [['["a","b"]'], ['[]']]]);
});

test('a file that is none, cut, or claims what it has not is refused with the reason', async () => {
  const good = written({ columnData: COLUMNS });
  const changed = (at: number, ...bytes: number[]) => {
    const copy = good.slice();
    copy.set(bytes, copy.length + at);
    return copy;
  };
  await refuses(new Uint8Array(3), 'notParquet');
  await refuses(new TextEncoder().encode('word,number\na,1\nb,2\n'), 'notParquet');
  await refuses(changed(-4, ...new TextEncoder().encode('PARE')), 'encrypted');
  await refuses(changed(-8, 0xff, 0xff, 0xff, 0xff), 'damaged');
  await refuses(changed(-8, 1, 0, 0, 0), 'damaged');
  const huge = new Uint8Array(20 * 2 ** 20);
  huge.set([0, 0, 0x20, 1, ...new TextEncoder().encode('PAR1')], huge.length - 8);
  await refuses(huge, 'metadataTooLarge');
});

test('a page that becomes gigabytes is refused before it takes memory', async () => {
  const data = [new Uint8Array(200 * 2 ** 20)];
  for (const codec of ['ZSTD', 'GZIP', 'SNAPPY'] as const) {
    const bytes = written({
      columnData: [{ name: 'zeros', data, type: 'BYTE_ARRAY' }],
      codec,
      statistics: false,
    });
    assert.ok(bytes.length < 16 * 2 ** 20, codec);
    await refuses(bytes, 'rowsTooLarge');
  }
});
