import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { ROOT } from '../program-files.ts';
import { withSourceFrames } from './source-frames.ts';

test('a stack of sources stays as it is', () => {
  const { stack = '' } = new Error('here');
  assert.equal(withSourceFrames(stack), stack);
});

test('a stack of a build names the line of the source', async () => {
  const { rolldown } = await import('rolldown');
  const folder = mkdtempSync(join(ROOT, 'build/source-frames-'));
  try {
    const entry = join(folder, 'failing.ts');
    const frames = join(ROOT, 'server/platform/stacks/source-frames.ts');
    const lines = [
      `import { withSourceFrames } from '${frames}';`,
      'interface Gone { readonly a: string }',
      'function fail(_gone?: Gone): never {',
      "  throw new Error('met');",
      '}',
      'try { fail(); } catch (error) { console.log(withSourceFrames((error as Error).stack ?? "")); }',
    ];
    writeFileSync(entry, lines.join('\n'));
    const built = join(folder, 'x/built');
    const bundle = await rolldown({ input: entry, platform: 'node', logLevel: 'silent' });
    await bundle.write({ dir: built, sourcemap: true, sourcemapExcludeSources: true });
    const ran = spawnSync(process.execPath, [join(built, 'failing.js')], { encoding: 'utf8' });
    assert.match(ran.stdout, /failing\.ts:4:9/, ran.stdout + ran.stderr);
    assert.doesNotMatch(ran.stdout, new RegExp(pathToFileURL(built).href));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
