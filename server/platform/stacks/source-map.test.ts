import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from '../program-files.ts';
import { originsIn } from './source-map.ts';

test('origins are those that Node finds', () => {
  // Named after its program: names of shared files change.
  const path = 'build/server/current/drivers.engines.sqlite.child.js.map';
  const map = JSON.parse(readFileSync(join(ROOT, path), 'utf8'));
  const lines = readFileSync(join(ROOT, path.replace(/\.map$/, '')), 'utf8').split('\n');
  const positions = lines.slice(0, 30).flatMap((text, at) => {
    const columns = Array.from({ length: 40 }, (_, part) => 1 + Math.floor((text.length * part) / 40));
    return [...new Set(columns)].map((column) => ({ line: at + 1, column }));
  });
  const node = new SourceMap(map);
  const expected = positions.map(({ line, column }) => {
    const origin = node.findOrigin(line, column);
    if (!('fileName' in origin)) return undefined;
    return { source: origin.fileName, line: origin.lineNumber };
  });
  const found = originsIn(map, positions);
  assert.ok(found.filter((origin) => origin !== undefined).length > 100);
  // Node uses any of several mappings of a position, so columns differ.
  for (const [at, origin] of found.entries()) {
    if (origin === undefined) continue;
    const { source, line } = origin;
    assert.deepEqual({ source, line }, expected[at], JSON.stringify(positions[at]));
  }
});

test('a position without a mapping has no origin', () => {
  const map = { sources: ['a.ts'], mappings: ';IAAA' };
  const positions = [
    { line: 1, column: 1 },
    { line: 2, column: 4 },
    { line: 2, column: 5 },
    { line: 9, column: 1 },
  ];
  const origin = { source: 'a.ts', line: 1, column: 1 };
  assert.deepEqual(originsIn(map, positions), [undefined, undefined, origin, undefined]);
});
