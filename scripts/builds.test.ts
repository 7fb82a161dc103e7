import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

const { build, oldBuilds } = (await import(join(import.meta.dirname, 'builds.js'))) as {
  build: (root: string, node: string, names: readonly string[]) => Promise<readonly unknown[]>;
  oldBuilds: (root: string) => readonly string[];
};
const FOLDERS = ['server', 'libs', 'console', 'cli', 'sdk', 'scripts', 'build/server'];
const PROGRAMS = ['build-server', 'build-console', 'build-cli', 'write-sdk'].map(
  (name) => `scripts/${name}.ts`,
);
const FILES = [
  'package.json',
  'package-lock.json',
  'CHANGELOG.md',
  'openapi.json',
  'server/a.ts',
  'server/b.ts',
  ...PROGRAMS,
];
const MARKS = ['build/server/current', 'build/console.stamp', 'build/cli.stamp'];
const ALL = ['server', 'console', 'client'];

const root = mkdtempSync(join(tmpdir(), 'builds-'));
after(() => rmSync(root, { recursive: true }));

/** This many minutes ago. */
const before = (minutes: number) => new Date(Date.now() - minutes * 60_000);

function age(minutes: number, paths: readonly string[]): void {
  for (const path of paths) lutimesSync(join(root, path), before(minutes), before(minutes));
}

test('a build is looked into when a source is newer than it, was added or removed; else its age tells', () => {
  for (const folder of FOLDERS) mkdirSync(join(root, folder), { recursive: true });
  for (const file of FILES) writeFileSync(join(root, file), '{}');
  assert.deepEqual(oldBuilds(root), ALL);
  symlinkSync('0123', join(root, 'build/server/current'));
  for (const mark of MARKS.slice(1)) writeFileSync(join(root, mark), '0123');
  age(20, [...FILES, ...FOLDERS]);
  age(10, MARKS);
  assert.deepEqual(oldBuilds(root), []);
  utimesSync(join(root, 'server/a.ts'), before(5), before(5));
  assert.deepEqual(oldBuilds(root), ALL);
  age(20, ['server/a.ts']);
  rmSync(join(root, 'server/b.ts'));
  assert.deepEqual(oldBuilds(root), ALL);
  age(20, ['server']);
  writeFileSync(join(root, 'server/c.test.ts'), '');
  age(20, ['server']);
  assert.deepEqual(oldBuilds(root), []);
});

/** Builds nothing, and changes a source meanwhile. */
const BUILDER = `import { rmSync, symlinkSync, utimesSync } from 'node:fs';
rmSync('build/server/current', { force: true });
symlinkSync(process.argv[2], 'build/server/current');
utimesSync('server/a.ts', new Date(), new Date());`;

test('a source that changed while it was built is newer; one that is the same all the same is read once', async () => {
  for (const name of ['console', 'cli']) rmSync(join(root, name), { recursive: true });
  writeFileSync(join(root, 'scripts/build-server.ts'), BUILDER);
  const link = join(root, 'build/server/current');
  assert.deepEqual(await build(root, process.execPath, ['server']), []);
  assert.ok(lstatSync(link).mtimeMs < lstatSync(join(root, 'server/a.ts')).mtimeMs);
  age(10, MARKS.slice(0, 1));
  age(5, ['server/a.ts']);
  assert.deepEqual(oldBuilds(root), []);
  assert.ok(lstatSync(link).mtimeMs > before(5).getTime());
  writeFileSync(join(root, 'server/a.ts'), 'changed');
  assert.deepEqual(oldBuilds(root), ['server']);
});

test('what killed builds left is removed, and nothing of those under way', async () => {
  const dead = spawnSync(process.execPath, ['--version']).pid;
  const stamp = '0123456789abcdef0123456789abcdef';
  const leftBy = (pid: number) =>
    [`console-${pid}`, `cli-${pid}`, `server/.${stamp}-${pid}`, `server/.current-${pid}`].map((name) =>
      join(root, 'build', name),
    );
  for (const path of [...leftBy(dead), ...leftBy(process.pid)]) mkdirSync(path, { recursive: true });
  await build(root, process.execPath, []);
  assert.deepEqual(leftBy(dead).filter(existsSync), []);
  assert.deepEqual(leftBy(process.pid).filter(existsSync), leftBy(process.pid));
});
