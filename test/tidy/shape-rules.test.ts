import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findFunctions, withoutTypes } from './functions.ts';
import { places, sample } from './sample.ts';
import { checkFunctionLength, checkLineLength, checkParameters } from './shape-rules.ts';

const lines = (count: number) => 'x();\n'.repeat(count);

test('lines over 110 characters are refused unless a string or an address makes them so', () => {
  const wide = 'x'.repeat(100);
  const text = [
    `// ${wide} ${wide}`,
    `call(${wide}, ${wide});`,
    `call('${wide} ${wide}');`,
    `// https://example.org/${wide}`,
    `const y = \`\n  ${wide} ${wide}\n\`;`,
  ].join('\n');
  assert.deepEqual(places(checkLineLength(sample({ 'a.ts': text }))), ['a.ts:1', 'a.ts:2']);
});

describe('functions', () => {
  test('finds every form, with its name, and nothing that only looks like one', () => {
    const text = `
      export function plain(a: number, b = f(1, 2)): Map<string, number> {}
      const arrow = async <T>(a: T): Promise<T> => { return a; };
      class Thing { #secret(a: string) {} get value(): number { return 1; } constructor() {} }
      list.map((item) => item.x);
      if (a) {} else for (const b of c) {}
      while (x) {}
      const object = { method({ a, b }: Pair, [c, d]: number[]) {} };
    `;
    const found = findFunctions(withoutTypes(text)).map(({ name, parameters }) => `${name}/${parameters}`);
    const expected = [
      'plain/2',
      'arrow/1',
      '#secret/1',
      'value/0',
      'constructor/0',
      '<anonymous>/1',
      'method/2',
    ];
    assert.deepEqual(found, expected);
  });

  const long = (name: string, count: number) => `function ${name}() {\n${lines(count - 2)}}\n`;

  test('70 lines pass, 71 do not; a suite is no function', () => {
    const suite = `describe('s', () => {\n${lines(100)}});\n`;
    const files = sample({ 'a.ts': long('fits', 70) + long('spills', 71), 'a.test.ts': suite });
    assert.deepEqual(places(checkFunctionLength(files, {})), ['a.ts:71']);
  });

  test('the list of exceptions can only shrink', () => {
    const files = sample({ 'a.ts': long('spills', 80) });
    assert.deepEqual(checkFunctionLength(files, { 'a.ts#spills': 80 }), []);
    assert.match(
      checkFunctionLength(files, { 'a.ts#spills': 90 })[0]?.message ?? '',
      /lower its entry .* to 80/,
    );
    assert.match(checkFunctionLength(files, { 'a.ts#spills': 75 })[0]?.message ?? '', /at most 75/);
    const fixed = sample({ 'a.ts': long('spills', 60) });
    assert.match(checkFunctionLength(fixed, { 'a.ts#spills': 80 })[0]?.message ?? '', /remove it/);
  });

  test('3 parameters pass, 4 do not', () => {
    const text =
      'function f(a, b, c) {}\nfunction g(a, b, c, d) {}\ncall((a, b, c, d) => 1);\nfunction h({ a, b, c, d }) {}';
    assert.deepEqual(places(checkParameters(sample({ 'a.ts': text }))), ['a.ts:2']);
  });
});
