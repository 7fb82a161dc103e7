import assert from 'node:assert/strict';
import { test } from 'node:test';
import { locations, sample } from './sample.ts';
import { checkComments, checkFileNames, checkLeftovers, checkMachineTraces } from './text-rules.ts';

// Texts forbidden in files are also forbidden in this one: it puts them together.
const word = (...parts: string[]) => parts.join('');

test('notes to oneself are found in any kind of file', () => {
  const files = sample({
    'a.ts': `x();\n// ${word('TO', 'DO')} later`,
    'b.md': word('FIX', 'ME'),
    'c.ts': `throw new Error('${word('not imple', 'mented')}')`,
    'd.ts': 'const todos = method();',
  });
  assert.deepEqual(locations(checkLeftovers(files)), ['a.ts:2', 'b.md:1', 'c.ts:1']);
});

test('registries and absolute paths of a machine are found, ordinary paths are not', () => {
  const files = sample({
    'a.md': `npm --registry https://${word('regis', 'try')}.example.org/`,
    'package-lock.json': `"${word('resol', 'ved')}": "https://example.org/x.tgz"`,
    'b.ts': `open('/${word('ho', 'me')}/someone/x')`,
    'c.sh': `cd /${word('wo', 'rk')}/main`,
    'd.ts': `open('/tmp/x'); import './${word('wo', 'rk')}/x.ts'; get('/api/home/x'); url('https://example.org/root/x')`,
  });
  assert.deepEqual(locations(checkMachineTraces(files)), [
    'a.md:1',
    'package-lock.json:1',
    'b.ts:1',
    'c.sh:1',
  ]);
});

test('drawers and barrels are found', () => {
  const bad = ['server/utils/x.ts', 'server/http/index.ts', 'a/helpers.ts'];
  const good = ['server/api-keys.ts', 'sdk/index.ts', 'console/vite.config.ts'];
  const files = sample(Object.fromEntries([...bad, ...good].map((path) => [path, ''])));
  assert.deepEqual(
    locations(checkFileNames(files)),
    bad.map((path) => `${path}:1`),
  );
});

test('comments over 110 characters are found unless an address makes them so', () => {
  const wide = 'x '.repeat(60);
  const text = [
    `// ${wide}`,
    `call('${wide}');`,
    `/** ${wide}`,
    ` * ${wide}`,
    `// https://example.org/${wide}`,
    `call(); // ${wide}`,
    `// ${'x'.repeat(100)}`,
  ].join('\n');
  assert.deepEqual(locations(checkComments(sample({ 'a.ts': text }))), [
    'a.ts:1',
    'a.ts:3',
    'a.ts:4',
    'a.ts:6',
  ]);
});
