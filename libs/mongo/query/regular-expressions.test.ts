import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BSONRegExp } from 'bson';
import { CommandError } from '../command-error.ts';
import { costOf } from './regex-cost.ts';
import { compileRegex } from './regular-expressions.ts';

const A = 'a'.repeat(30);

describe('a regular expression', () => {
  // Each would take minutes, or forever.
  for (const [pattern, text] of [
    ['^(a*){30}$', `${A}b`],
    ['^(a|a|a|a)*$', `${'a'.repeat(19)}b`],
    ['^(a+)+$', `${A}b`],
    ['a*a*a*a*a*a*a*a*a*c', A.repeat(4)],
    ['(?=(a*)a*\\1a*\\1a*\\1a*a*b)', A.repeat(10)],
    ['^((a|b)?[ab]?){40}c', `${A}${A}`],
  ] as const) {
    test(`is stopped when it takes too long: ${pattern}`, { timeout: 20_000 }, () => {
      assert.throws(
        () => compileRegex(new BSONRegExp(pattern, ''))(text),
        (error) => error instanceof CommandError && error.codeName === 'MaxTimeMSExpired',
      );
    });
  }

  test('matches as JavaScript has it, watched or not', () => {
    for (const [pattern, options, text, expected] of [
      ['^a.*z$', '', 'a-z', true],
      ['(foo|bar)+', 'i', 'xBARx', true],
      ['^b$', 'm', 'a\nb', true],
      ['(?i)ABC', '', 'xabc', true],
      ['[)*+]{2}\\)', '', ')*)', true],
      ['^(\\w+@\\w+\\.\\w{2,3})$', '', 'ann@example.org', true],
      ['^x', '', 'ax', false],
    ] as const) {
      assert.equal(compileRegex(new BSONRegExp(pattern, options))(text), expected, pattern);
    }
  });

  test('costs what its pattern says', () => {
    for (const [pattern, options, degree] of [
      ['abc', '', 1],
      ['^abc', '', 0],
      ['^abc', 'm', 1],
      ['^abc|d', '', 1],
      ['^a.*b', '', 1],
      ['a.*b+', '', 3],
      ['[*+]\\*', '', 1],
      ['(ab)?c', '', 1],
      ['(a)\\1', '', 2],
      ['(ab){2}', '', Number.POSITIVE_INFINITY],
      ['(?:a*){30}', '', Number.POSITIVE_INFINITY],
      ['(ab)*', '', Number.POSITIVE_INFINITY],
      ['a{2,}', '', 2],
    ] as const) {
      assert.equal(costOf(pattern, options).degree, degree, pattern);
    }
  });
});
