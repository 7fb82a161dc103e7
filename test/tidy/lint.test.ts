/** The linter's own rules of this project can fail: each is given a text that it must refuse. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const GROUP = 'Write the members plainly';

interface Sample {
  readonly path: string;
  readonly text: string;
  /** A part of the linter's message; undefined: none. */
  readonly said: string | undefined;
}

const TIME = 'The time comes from a Clock';
const RANDOM = 'Randomness comes from server/platform/ids.ts';
const SHELL = 'No shell';
const SQL = 'SQL lives in a store.ts';
const FOCUS = 'Left over from debugging';

const refused = (said: string, ...texts: readonly string[]): Sample[] =>
  texts.map((text, i) => ({
    path: `server/storage/${said.split(' ')[1]?.toLowerCase()}-${i}.ts`,
    text,
    said,
  }));
const allowed = (path: string, text: string): Sample => ({ path, text, said: undefined });

const long = (head: string, foot: string) => `${head}\n${'f();\n'.repeat(71)}${foot}`;

const SAMPLES: readonly Sample[] = [
  ...refused(GROUP, 'export const a = (b: number) => ({ ...{ b, c: 1 } });', 'f({ a: 1, ...{ b: 2 } });'),
  allowed(
    'server/a.ts',
    'export const a = (b: object, c?: 1) => ({ ...b, ...(c === undefined ? {} : { c }) });',
  ),
  ...refused(
    TIME,
    'f(Date.now());',
    'f(new Date());',
    'f(new Date);',
    'f(Date());',
    'f(performance.now());',
    'f(process.hrtime.bigint());',
    'f(process.uptime());',
    `f(\`\${Date.now()}\`);`,
  ),
  ...refused(
    RANDOM,
    'f(Math.random());',
    'f(crypto.randomUUID());',
    'f(randomBytes(16));',
    'f(randomInt(3));',
  ),
  ...refused("Don't use process.env", 'f(process.env.HOME);'),
  ...refused(
    SHELL,
    'spawn(program, [], { shell: true });',
    "import { exec } from 'node:child_process';\nexec(line);",
    "import { execSync } from 'child_process';\nexecSync(line);",
    "import * as processes from 'node:child_process';\nprocesses.exec(line);",
    "const processes = await import('node:child_process');\nprocesses.exec(line);",
  ),
  ...refused(FOCUS, "test('x', { only: true }, () => {});"),
  ...refused("Don't focus the test", "test.only('x', () => {});", "describe.only('x', () => {});"),
  ...refused('an unexpected use of the debugger', 'debugger;'),
  ...refused('Avoid default exports', 'const a = 1;\nexport { a as default };', 'export default 1;'),
  ...refused(
    SQL,
    "f('SELECT id FROM buckets');",
    'f(`\n  INSERT INTO buckets VALUES (?)`);',
    "f('UPDATE buckets SET size = ?');",
    "f('DELETE FROM buckets');",
  ),
  ...['server/storage/object-sql.ts', 'server/calls/x-store.ts', 'server/metadata/migrate.ts'].map((home) =>
    allowed(home, "f('SELECT id FROM buckets', `DELETE FROM buckets`);"),
  ),
  ...refused('This function has too many lines', long('function f() {', '}')),
  {
    path: 'server/long.test.ts',
    text: long("test('x', () => {", '});'),
    said: 'A test has at most 70 lines',
  },
  allowed('server/suite.test.ts', long("describe('x', () => {", '});')),
  ...refused('Function has 4 parameters', 'f(function g(a, b, c, d) {});', 'f((a, b, c, d) => a);'),
  allowed('server/d.ts', 'f((a, b, { c, d }) => [a, b, c, d]);'),
  { path: 'server/apiKeys.ts', text: 'f();', said: 'The filename should be in kebab-case' },
  { path: 'server/storage/all.ts', text: "export * from './a.ts';", said: 'barrel' },
  ...refused('This file has too many lines', 'f();\n'.repeat(401)),
  {
    path: 'server/storage/one.ts',
    text: "import { two } from './two.ts';\nexport const one = () => two;",
    said: 'This import is part of a cycle',
  },
  {
    path: 'server/storage/two.ts',
    text: "import { one } from './one.ts';\nexport const two = () => one;",
    said: 'This import is part of a cycle',
  },
  allowed('server/b.ts', 'f();\n'.repeat(399)),
  allowed('server/platform/clock.ts', 'f(Date.now(), performance.now());'),
  allowed('server/platform/ids.ts', 'f(randomBytes(16));'),
  allowed('server/config/config.ts', 'f(process.env);'),
  allowed('scripts/a.ts', 'f(process.env, Date.now());'),
  allowed('bench/a.ts', 'f(process.env, performance.now());'),
  allowed('server/storage/a.test.ts', 'f(Date.now(), process.env, Math.random());'),
  allowed(
    'server/c.ts',
    "import { execFile, spawn } from 'node:child_process';\n// Date.now()\n" +
      "f('process.env', new Date(at), formatDate(at), clock.now(), database.exec('x'), execFile, spawn);\n" +
      "f('Select the bucket you want', 'Update the key');",
  ),
];

/** The messages of the project's linter about each file, all checked in one run. */
function lint(samples: readonly Sample[]): Map<string, string> {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const { vcs: _, ...config } = JSON.parse(readFileSync(join(ROOT, 'biome.json'), 'utf8'));
  writeFileSync(join(folder, 'biome.json'), JSON.stringify(config));
  cpSync(join(ROOT, 'scripts/lint'), join(folder, 'scripts/lint'), { recursive: true });
  for (const { path, text } of samples) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), `${text}\n`);
  }
  const args = ['lint', '--reporter=json', '--diagnostic-level=warn', '--max-diagnostics=none'];
  const { stdout, stderr } = spawnSync(join(ROOT, 'node_modules/.bin/biome'), args, {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.notEqual(stdout, '', stderr);
  const said = new Map<string, string>();
  for (const { location, message } of JSON.parse(stdout).diagnostics) {
    said.set(location.path, `${said.get(location.path) ?? ''}${message}\n`);
  }
  return said;
}

describe('the linter', () => {
  const found = lint(SAMPLES);
  for (const { path, text, said } of SAMPLES) {
    test(`${said === undefined ? 'allows' : 'refuses'} in ${path}: ${text.slice(0, 100)}`, () => {
      const own = found.get(path) ?? '';
      assert.ok(said === undefined ? own === '' : own.includes(said), own);
    });
  }
});
