import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cases } from '../../testing/cases.ts';
import { jsonFault } from './json-fault.ts';

const FAULTS: Readonly<Record<string, string>> = {
  '{"name":"abc",}': 'line 1, column 15: a value between the comma and } was expected',
  '[1,]': 'line 1, column 4: a value between the comma and ] was expected',
  "{'name':1}": 'line 1, column 2: a double quote instead of a single quote was expected',
  '{\n  "a": 1\n  "b": 2\n}': 'line 3, column 3: a comma or } was expected',
  '{name: "abc"}': "line 1, column 2: a member's name in double quotes was expected",
  '{"a" 1}': 'line 1, column 6: a colon was expected',
  '{"é😀" 1}': 'line 1, column 7: a colon was expected',
  '{"a":1} x': 'line 1, column 9: the end of the text was expected',
  '[1 2]': 'line 1, column 4: a comma or ] was expected',
  '[1}': 'line 1, column 3: a comma or ] was expected',
  '{"a":1': 'line 1, column 7: the text ends where a comma or } was expected',
  '{"a': 'line 1, column 4: the text ends where a closing double quote was expected',
  '"a\nb"': 'line 1, column 3: an escape (\\n for a line end) was expected',
  '"C:\\dir"': 'line 1, column 4: one of the escapes \\" \\\\ \\/ \\b \\f \\n \\r \\t \\u1234 was expected',
};

test('the position is given by line and column, and what was expected there', () => {
  for (const [text, said] of Object.entries(FAULTS)) assert.equal(jsonFault(text), said, text);
});

test('what is no value is told what values are', () => {
  for (const text of [
    '',
    ' ',
    'NaN',
    '[01]',
    '-',
    '+1',
    '.5',
    '1.',
    'True',
    '{"a":}',
    '[nulll]',
    '\uFEFF{}',
  ]) {
    assert.match(jsonFault(text), /a value \(text in double quotes/, text);
  }
});

test('nesting of any depth is walked', () => {
  const depth = 100_000;
  assert.match(jsonFault('['.repeat(depth)), /^line 1, column 100001: the text ends where a value/);
  assert.match(jsonFault(`${'['.repeat(depth)}}`), /^line 1, column 100001: a value/);
});

test('a control character put anywhere into JSON is found where it is, or where its word or escape begins', () => {
  const value = fc.jsonValue({ maxDepth: 4 });
  fc.assert(
    fc.property(value, fc.nat(), (json, seed) => {
      const whole = JSON.stringify(json, null, 2);
      const at = seed % (whole.length + 1);
      const text = `${whole.slice(0, at)}\u0001${whole.slice(at)}`;
      const [, line, column] = /^line (\d+), column (\d+): /.exec(jsonFault(text)) ?? [];
      const lines = text.split('\n');
      const before = lines.slice(0, Number(line) - 1).reduce((sum, each) => sum + each.length + 1, 0);
      const inLine = [...(lines[Number(line) - 1] ?? '')].slice(0, Number(column) - 1).join('');
      assert.match(text.slice(before + inLine.length, at), /^[\w.+\\-]*$/, JSON.stringify([text, at]));
    }),
    { numRuns: cases(1000) },
  );
});
