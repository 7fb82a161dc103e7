import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asCsv, asJson } from './result-text.ts';

const RESULT = {
  columns: ['a', 'a', 'b'].map((name) => ({ name })),
  rows: [
    [null, '', '=1+1'],
    ['-12.5', '-1e-7', '-cmd'],
    ['9007199254740993', '"a",\n', { x: [1] }],
  ],
};

test('CSV tells NULL from empty text, and has numbers but no formula', () => {
  const lines = ['a,a,b', `,"",'=1+1`, `-12.5,-1e-7,'-cmd`, `9007199254740993,"""a"",\n","{""x"":[1]}"`];
  assert.equal(asCsv(RESULT), lines.map((line) => `${line}\r\n`).join(''));
});

test('JSON has every value as it came', () => {
  const names = ['a', 'a_2', 'b'] as const;
  assert.deepEqual(
    JSON.parse(asJson(RESULT)),
    RESULT.rows.map((row) => Object.fromEntries(row.map((cell, at) => [names[at], cell]))),
  );
});
