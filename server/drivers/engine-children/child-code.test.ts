import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from '../../platform/program-files.ts';

/** The writer resolves its real path, as bin/cloudlet does to start the server. */
const BUILD = realpathSync(join(ROOT, 'build/server/current'));

/** The code of a child as run from the sources, and from the distributed build. */
const PLACES = [
  { entry: join(ROOT, 'server/drivers/engines/sqlite/child.ts'), ending: 'ts' },
  { entry: join(ROOT, 'server/drivers/engines/mongodb/child/child.ts'), ending: 'ts' },
  { entry: join(BUILD, 'drivers.engines.sqlite.child.js'), ending: 'js' },
  { entry: join(BUILD, 'drivers.engines.mongodb.child.child.js'), ending: 'js' },
] as const;

for (const { entry, ending } of PLACES) {
  const engine = /engine-\w+/.exec(entry)?.[0];
  test(`every file that the ${engine} child imports, at once or later, comes along (.${ending})`, (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'cloudlet-child-code-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const writer =
      ending === 'ts'
        ? join(ROOT, 'server/drivers/engine-children/child-code.ts')
        : join(dirname(entry), 'drivers.engine-children.child-code.js');
    execFileSync(process.execPath, ['--no-warnings', writer, folder, entry]);
    const files = globSync('**/*.mjs', { cwd: folder });
    assert.ok(
      files.some((file) => basename(file).startsWith('drivers.engine-') || file.endsWith('child.mjs')),
    );
    const imported = files.flatMap((file) => {
      const text = readFileSync(join(folder, file), 'utf8');
      return [...text.matchAll(/\b(?:from|import)\s*\(?\s*['"`](\.{1,2}\/[^'"`\s]+)['"`]/g)].map(
        ([, name = '']) => join(folder, dirname(file), name),
      );
    });
    assert.ok(imported.length > 0);
    assert.deepEqual(
      imported.filter((path) => !existsSync(path)),
      [],
    );
  });
}

test('the built child of MongoDB loads what it needs by name, from few files', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-child-code-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const writer = join(BUILD, 'drivers.engine-children.child-code.js');
  const entry = join(BUILD, 'drivers.engines.mongodb.child.child.js');
  const packages = ['bson', 'mingo', 'nodes2ts', '@orama/stemmers/english'];
  execFileSync(process.execPath, [writer, folder, entry, ...packages]);
  const names = [
    ...['mingo/core', 'mingo/lazy', 'nodes2ts', '@orama/stemmers/dutch', '@orama/stopwords/dutch'],
    ...['expression', 'accumulator', 'pipeline'].map((kind) => `mingo/operators/${kind}`),
  ];
  const load =
    'for (const name of process.argv.slice(1)) if (Object.keys(require(name)).length === 0) throw name';
  execFileSync(process.execPath, ['--eval', load, ...names], { cwd: folder });
  assert.ok(globSync('**/*.*js', { cwd: folder }).length < 120);
  assert.deepEqual(globSync('node_modules/bson', { cwd: folder }), []);
});
