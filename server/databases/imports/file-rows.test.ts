/** Files of rows are read the same however they arrive, and lines are counted as in editors. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cases } from '../../testing/cases.ts';
import { type BrokenText, CsvReader } from './csv-reader.ts';
import { readRows } from './file-rows.ts';
import { hasHeader, kindOf, separatorOf } from './guesses.ts';

const ROW = { mostCharacters: 1000 };

function read(text: string, cuts: readonly number[], separator = ',') {
  const reader = new CsvReader({ separator, ...ROW });
  const places = [0, ...cuts.map((cut) => cut % (text.length + 1)), text.length].toSorted((a, b) => a - b);
  const pieces = places.slice(1).map((to, at) => text.slice(places[at], to));
  return [...pieces.flatMap((piece) => [...reader.push(piece)]), ...reader.end()];
}

const written = (field: string | null) => (field === null ? '' : `"${field.replaceAll('"', '""')}"`);
const field = fc.option(fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r', 'é', '🦊') }));

test('CSV is the same in any pieces, whatever is quoted', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(field, field), { minLength: 1, maxLength: 8 }),
      fc.constantFrom('\n', '\r\n', '\r'),
      fc.array(fc.nat(), { maxLength: 6 }),
      (rows, end, cuts) => {
        const text = rows.map((row) => row.map(written).join(',')).join(end);
        assert.deepEqual(
          read(text, cuts).map(({ fields }) => [...fields]),
          rows,
        );
      },
    ),
    { numRuns: cases(500) },
  );
});

test('rows know their lines, and faults name them', () => {
  const lines = read('a,b\r\n"x\ny",1\n\n2,3', []).map(({ line }) => line);
  assert.deepEqual(lines, [1, 2, 4, 5]);
  const fault = (text: string) => {
    try {
      read(text, []);
    } catch (error) {
      return (error as BrokenText).line;
    }
    return null;
  };
  assert.deepEqual([fault('a\n"b"c\n'), fault('a\nb\n"c\nd'), fault(`a\n"${'x'.repeat(2000)}`)], [2, 3, 2]);
});

test('separator, header and types are guessed', () => {
  for (const separator of [',', ';', '\t', '|'])
    assert.equal(separatorOf(`name${separator}x\n"a,b;c|d"${separator}1\nd, e; f${separator}2\n`), separator);
  assert.equal(separatorOf('one\ntwo\n'), ',');
  const header = (text: string) => hasHeader(read(text, []));
  assert.deepEqual(
    [header('a,b\n1,2'), header('1,2\n3,4'), header('a,a\n1,2'), header('a,a\nb,c'), header('a,\n1,2')],
    [true, false, true, false, false],
  );
  const kinds: readonly (readonly unknown[])[] = [
    ['1', '-2', null],
    ['1', '2.5', '1e3'],
    ['01234', '1'],
    ['123456789012345678', '-1'],
    ['1234567890123456789', '1'],
    ['true', 'FALSE'],
    ['2026-02-03'],
    ['2026-02-03T04:05:06Z', '2026-02-03 04:05'],
    [String.raw`\x00ff`],
    [{ a: 1 }, [1]],
    ['1', 'x'],
    [null, ''],
  ];
  assert.deepEqual(kinds.map(kindOf), [
    ...[
      'integer',
      'number',
      'text',
      'integer',
      'text',
      'boolean',
      'date',
      'timestamp',
      'bytes',
      'json',
      'text',
      'text',
    ],
  ]);
});

test('names that come twice differ, and the line of a spreadsheet that names the separator is no row', async () => {
  const of = async (text: string, header?: boolean) => {
    const found = await readRows([Buffer.from(text)].values() as never, { empty: 'unquoted', header });
    const rows = (await Array.fromAsync(found.rows)).flat();
    return [found.separator, found.header, found.fields, rows.map(({ line, values }) => [line, ...values])];
  };
  const joined = 'id,name,Name,name_2\n1,a,b,c\n';
  assert.deepEqual(await of(joined), [
    ',',
    true,
    ['id', 'name', 'Name_3', 'name_2'],
    [[2, '1', 'a', 'b', 'c']],
  ]);
  for (const mark of ['', '\ufeff'])
    for (const first of ['sep=;\r\n', '"sep=;"\n', 'SEP=;\n'])
      assert.deepEqual(await of(`${mark}${first}id;n\n1;"2\n"\n`), [
        ';',
        true,
        ['id', 'n'],
        [[3, '1', '2\n']],
      ]);
  assert.deepEqual(await of('sep=|\n1;2|3\n', false), [
    '|',
    false,
    ['column_1', 'column_2'],
    [[2, '1;2', '3']],
  ]);
});

test('many fields of one name get numbers, and too many fields are refused before', async () => {
  const fieldsOf = async (count: number) => {
    const text = `${Array.from({ length: count }, () => 'a').join(',')}\n`;
    return (await readRows([Buffer.from(text)].values() as never, { empty: 'unquoted', header: true }))
      .fields;
  };
  const begun = process.cpuUsage().user;
  const fields = await fieldsOf(2000);
  assert.deepEqual([fields.at(0), fields.at(1), fields.at(-1)], ['a', 'a_2', 'a_2000']);
  await assert.rejects(fieldsOf(120_000), /has more than 2000 fields/);
  // Comparing each with all others took minutes.
  assert.ok(process.cpuUsage().user - begun < 5e6);
});

test('a large file is never in memory as a whole', async () => {
  let given = 0;
  async function* file() {
    for (; given < 200; given++) yield Buffer.from(`${'1,2\n'.repeat(16_384)}`);
  }
  const { rows } = await readRows(file(), { empty: 'unquoted' });
  assert.ok(given < 10);
  let count = 0;
  for await (const page of rows) {
    count += page.length;
    assert.ok(page.length <= 5 * 16_384);
  }
  assert.equal(count, 200 * 16_384);
});

test('a first row that is too long to tell the fields from is named, and not taken for none', async () => {
  const reading = (text: string) => {
    async function* pieces() {
      for (let at = 0; at < text.length; at += 65_536) yield Buffer.from(text.slice(at, at + 65_536));
    }
    return readRows(pieces(), { empty: 'unquoted' });
  };
  const long = 'x'.repeat(300 * 1024);
  for (const text of [`[{"a":"${long}"}]`, `${long},b\n1,2\n`])
    await assert.rejects(reading(text), /begins with a row of more than 256 KB/);
  await assert.rejects(reading(''), /has no rows/);
});
