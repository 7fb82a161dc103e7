import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvText, prefersCsv } from './routes.ts';

test('cells are quoted where they must be, rows end with CRLF', () => {
  const text = csvText([
    ['a', 'b,c', 'say "x"', 'two\nlines'],
    [1, -0.5, 0.000000001, ''],
  ]);
  assert.equal(text, 'a,"b,c","say ""x""","two\nlines"\r\n1,-0.5,0.000000001,\r\n');
});

test('no cell of text is a formula', () => {
  for (const start of ['=', '+', '-', '@', '\t', '\r']) {
    const text = csvText([[`${start}cmd()`]]);
    assert.match(text, /^"?'/, JSON.stringify(text));
  }
  assert.equal(csvText([['=1+1,"x"']]), `"'=1+1,""x"""\r\n`);
});

test('CSV is sent to who prefers it, JSON to everybody else', () => {
  const cases: [string | undefined, boolean][] = [
    [undefined, false],
    ['*/*', false],
    ['application/json', false],
    ['text/csv', true],
    ['TEXT/CSV; header=present', true],
    ['text/*', true],
    ['text/csv, */*;q=0.1', true],
    ['text/csv, application/json', false],
    ['text/csv;q=0.5, application/json;q=0.9', false],
    ['text/csv;q=0.9, application/json;q=0.5', true],
    ['text/csv;q=0', false],
    ['nonsense;;q=x', false],
  ];
  for (const [accept, expected] of cases) assert.equal(prefersCsv(accept), expected, String(accept));
});
