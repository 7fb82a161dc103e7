import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diffOf } from './text-diff.ts';

const shown = (before: string, after: string) =>
  diffOf(before, after)
    ?.map(({ kind, lines }) => `${{ same: '=', gone: '-', new: '+' }[kind]}${lines.join('|')}`)
    .join(' ');

test('lines that are gone and new are named, and the rest stays', () => {
  assert.equal(shown('a\nb\nc', 'a\nx\nc'), '=a -b +x =c');
  assert.equal(shown('a\nb', 'a\nb'), '=a|b');
  assert.equal(shown('', 'a'), '- +a');
  assert.equal(shown('a\nb\nc\nd', 'b\nc\nd\ne'), '-a =b|c|d +e');
  assert.equal(shown('x\nx', 'x\nx\nx'), '=x|x +x');
});

test('what is applied to the first gives the second, for any two', () => {
  const random = (seed: number) => () => {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff;
    return seed;
  };
  for (let round = 0; round < 300; round++) {
    const next = random(round);
    const text = () => Array.from({ length: next() % 12 }, () => 'abc'[next() % 3]).join('\n');
    const [a, b] = [text(), text()];
    const parts = diffOf(a, b) ?? [];
    const side = (left: 'gone' | 'new') =>
      parts.flatMap(({ kind, lines }) => (kind === left ? [] : lines)).join('\n');
    assert.deepEqual([side('new'), side('gone')], [a, b], JSON.stringify([a, b]));
  }
});

test('texts that differ too much are not compared', () => {
  const many = (word: string) => Array.from({ length: 3000 }, (_, i) => `${word}${i}`).join('\n');
  assert.equal(diffOf(many('a'), many('b')), undefined);
});
