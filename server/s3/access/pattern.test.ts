import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomFrom } from '../../testing/random.ts';
import { Effort, matches, type PatternOptions, readPattern, type Variables } from './pattern.ts';

interface Options extends PatternOptions {
  readonly variables?: Variables;
}

const says = (text: string, given: string, { variables = () => undefined, ...options }: Options = {}) =>
  matches(readPattern(text, options), given, { variables, effort: new Effort() });

test('wildcards stand for any text and any character', () => {
  for (const [pattern, yes, no] of [
    ['', [''], ['a']],
    ['*', ['', 'a', 'a/b'], []],
    ['a', ['a'], ['', 'A', 'aa', 'ba']],
    ['a*', ['a', 'ab', 'a/b'], ['', 'ba']],
    ['*a', ['a', 'ba'], ['ab']],
    ['a*a', ['aa', 'aba'], ['a', 'ab']],
    ['a?c', ['abc', 'a/c'], ['ac', 'abbc']],
    ['*a?', ['xab', 'aab', 'aa'], ['a', 'xa']],
    ['a*b*c', ['abc', 'axbxc', 'abcbc'], ['acb', 'ab', 'ac']],
    ['*.?g', ['a.pg', '.jg'], ['.g']],
    ['a.b', ['a.b'], ['axb']],
    ['[a]+', ['[a]+'], ['a', 'aa']],
  ] as const) {
    for (const text of yes) assert.equal(says(pattern, text), true, `${pattern} ${text}`);
    for (const text of no) assert.equal(says(pattern, text), false, `${pattern} ${text}`);
  }
});

test('a pattern matches what a regular expression of it does', () => {
  const next = randomFrom(7);
  const text = (alphabet: string, length: number) =>
    Array.from({ length: next(length) }, () => alphabet.charAt(next(alphabet.length))).join('');
  for (let round = 0; round < 20_000; round++) {
    const [pattern, given] = [text('ab*?', 8), text('ab', 10)];
    const expected = new RegExp(`^${pattern.replaceAll('*', '.*').replaceAll('?', '.')}$`).test(given);
    assert.equal(says(pattern, given), expected, `${pattern} ${given}`);
  }
});

test('many wildcards come to an end', () => {
  assert.equal(says(`${'*a'.repeat(5000)}*b`, 'a'.repeat(1024)), false);
  assert.equal(says(`${'*?a'.repeat(300)}*b`, 'a'.repeat(1024)), false);
});

/** `${name}`, which linters consider a mistake. */
const variable = (name: string) => ['$', `{${name}}`].join('');

test('variables are text, whatever they hold, and match nothing where they are not known', () => {
  const variables = (name: string) => (name === 'aws:username' ? 'a*' : undefined);
  const options = { hasVariables: true, variables };
  const home = (name: string) => `home/${variable(name)}/*`;
  assert.equal(says(home('aws:username'), 'home/a*/x', options), true);
  assert.equal(says(home('aws:UserName'), 'home/a*/x', options), true);
  assert.equal(says(home('aws:username'), 'home/ab/x', options), false);
  assert.equal(says(home('aws:userid'), 'home//x', options), false);
  assert.equal(says(variable("aws:userid, 'none'"), 'none', options), true);
  assert.equal(says(['*', '?', '$'].map(variable).join(''), '*?$', options), true);
  assert.equal(says(variable('*'), 'a', options), false);
  assert.equal(says(variable('aws:username'), variable('aws:username')), true);
  assert.equal(says('a*', 'a*', { hasWildcards: false }), true);
  assert.equal(says('a*', 'ab', { hasWildcards: false }), false);
});
