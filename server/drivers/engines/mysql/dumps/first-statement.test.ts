import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FirstStatement } from './first-statement.ts';

function hasStatement(text: string, pieceBytes: number): boolean {
  const first = new FirstStatement();
  const all = Buffer.from(text);
  for (let at = 0; at < all.length; at += pieceBytes) first.take(all.subarray(at, at + pieceBytes));
  first.end();
  return first.isFound;
}

test('blanks and comments are no statement, however they are cut', () => {
  const long = '/* '.repeat(5000);
  const none = ['', ' \n;\n', '-- a', '--\n', '#a\n# b', '/* a */', '/* a\n b\n*/ -- c', long, `${long}*/ `];
  const some = [
    'a',
    '--a',
    '/',
    '/*! a */',
    '/*M! a */',
    '/*!40101 SET a */',
    '/**/a',
    '-- a\nb',
    '# a\n/* b */;c',
    `${long}*/a`,
  ];
  for (const pieceBytes of [1, 2, 3, 5, 100_000]) {
    for (const text of none) assert.equal(hasStatement(text, pieceBytes), false, text.slice(0, 20));
    for (const text of some) assert.equal(hasStatement(text, pieceBytes), true, text.slice(0, 20));
  }
});
