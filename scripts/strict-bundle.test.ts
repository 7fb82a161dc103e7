// A process of its own: it stands still for seconds.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { build, type InputOptions } from 'rolldown';
import { STRICT } from './strict-bundle.ts';

const directory = mkdtempSync(join(tmpdir(), 'cloudlet-strict-'));
/** Rolldown mentions a plugin that took nearly all of a build of over 3 s. */
const SLOW_MS = 3200;
const slow = {
  name: 'slow',
  transform: (code: string, id: string) => {
    if (!id.endsWith('a.js')) return null;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SLOW_MS);
    return { code, map: null };
  },
};
const bundle = (text: string, more: InputOptions) => {
  const input = join(directory, 'a.js');
  writeFileSync(input, text);
  return build({ ...STRICT, ...more, input, cwd: directory, output: { dir: join(directory, 'out') } });
};

before(() => writeFileSync(join(directory, 'b.js'), 'export const b = 1;'));
after(() => rmSync(directory, { recursive: true }));

test('a slow host is no error of a bundle', async () => {
  const text = 'export const a = 1;';
  await assert.rejects(bundle(text, { plugins: [slow], checks: {} }), /slow/);
  await bundle(text, { plugins: [slow] });
});

test('everything else that the bundler reports is', async () => {
  await assert.rejects(bundle("import { c } from './b.js'; export const a = c;", {}), /"c"/);
  await assert.rejects(bundle("import a from 'not-there'; export { a };", {}), /not-there/);
});
