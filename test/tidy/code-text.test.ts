import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readCode } from './code-text.ts';

const dollar = '$';

test('comments, strings and regular expressions are blanked, and every index stays', () => {
  const text = "a('x)'); // b(\n/* c( */ d(/e\\/[/(]f/.test(g)); h / i / j;\n";
  const { code, strings } = readCode(text);
  assert.equal(code.length, text.length);
  assert.equal(code.replace(/ +/g, ' '), "a(' '); \n d(/ /.test(g)); h / i / j;\n");
  assert.deepEqual(strings, [{ index: 3, value: 'x)' }]);
});

test('the expressions of a template are code, also nested ones', () => {
  const text = `f(\`one ${dollar}{g({ a: \`two ${dollar}{h}\` })} three\`) + 'x'`;
  const { code, strings } = readCode(text);
  assert.match(code, /g\(\{ a: /);
  assert.match(code, /\{h\}/);
  assert.deepEqual(
    strings.map(({ value }) => value),
    ['one ', 'two ', '', ' three', 'x'],
  );
});

test('an apostrophe that opens no string costs one line at most', () => {
  const { code } = readCode("<p>Don't</p>\nprocess.env;");
  assert.match(code, /process\.env/);
});

test('escaped quotes do not end a string', () => {
  assert.deepEqual(
    readCode(String.raw`'a\'b' + "c\\"`).strings.map(({ value }) => value),
    [String.raw`a\'b`, String.raw`c\\`],
  );
});
