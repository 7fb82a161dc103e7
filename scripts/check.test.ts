/** The check in a small separate repository: its output, and its retries. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';

const PASSES =
  "import { test } from 'node:test'; test('passes', () => {}); test('waits', { skip: 'no root' });";
const FAILS = "import { test } from 'node:test'; test('fails', () => { throw new Error('boom'); });";
const FLAKY = `
  import { existsSync, writeFileSync } from 'node:fs';
  import { test } from 'node:test';
  test('one', () => {});
  test('two', () => {
    const mark = import.meta.filename + '.ran';
    if (existsSync(mark)) return;
    writeFileSync(mark, '');
    throw new Error('by accident');
  });`;

/** Runs the check where these files are the only tests; tsc passes there, and biome as given. */
function check(
  t: TestContext,
  tests: Readonly<Record<string, string>>,
  { biome = 'true', args = [] as readonly string[] } = {},
) {
  const root = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  t.after(() => rmSync(root, { recursive: true }));
  for (const name of [
    'check.ts',
    'check-steps.ts',
    'changed-tests.ts',
    'run-load.ts',
    'test-run.ts',
    'test-process.ts',
    'test-tally.ts',
    'installed.ts',
    'programs.json',
  ]) {
    cpSync(join(import.meta.dirname, name), join(root, 'scripts', name));
  }
  for (const path of [
    'server/platform/host/host-facts.ts',
    'test/tidy/imports.ts',
    'test/tidy/source-files.ts',
  ]) {
    cpSync(join(import.meta.dirname, '..', path), join(root, path));
  }
  mkdirSync(join(root, 'node_modules/.bin'), { recursive: true });
  for (const [name, target] of Object.entries({ tsc: 'true', biome })) {
    symlinkSync(`/bin/${target}`, join(root, 'node_modules/.bin', name));
  }
  for (const [path, text] of Object.entries({ 'package.json': '{"type": "module"}', ...tests })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const options = { encoding: 'utf8', env, timeout: 60_000 } as const;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'scripts/check.ts'), ...args],
    options,
  );
  return { status, output: stdout + stderr, lastLine: stdout.trimEnd().split('\n').at(-1) };
}

test('all is well: every skip is named, and the last line counts', (t) => {
  const { status, output, lastLine } = check(t, { 'server/a.test.ts': PASSES, 'test/tidy.test.ts': PASSES });
  assert.equal(lastLine, '2 passed, 0 failed, 2 skipped', output);
  assert.match(output, /skipped: server\/a\.test\.ts › waits \(no root\)/);
  assert.equal(status, 0);
});

test('a file that passes when it runs again, alone, is reported as flaky with its error, and counts as passed', (t) => {
  const tests = { 'test/acceptance/a.test.ts': FLAKY, 'server/b.test.ts': PASSES };
  const { status, output, lastLine } = check(t, tests, { args: ['--all'] });
  assert.equal(lastLine, '3 passed, 0 failed, 1 skipped', output);
  assert.match(output, /failed: test\/acceptance\/a\.test\.ts › two\n\s+Error: by accident/);
  assert.match(output, /^ {2}flaky: test\/acceptance\/a\.test\.ts/m);
  assert.equal(status, 0);
});

test('a file that fails again, and a linter that complains, are failures', (t) => {
  const { status, output, lastLine } = check(t, { 'server/a.test.ts': FAILS }, { biome: 'false' });
  assert.equal(lastLine, '0 passed, 2 failed, 0 skipped', output);
  assert.match(output, /^again .*FAILED 0 passed, 1 failed/m);
  assert.doesNotMatch(output, /flaky/);
  assert.equal(status, 1);
});

test('with more than five files failed none is tried again', (t) => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const { status, output, lastLine } = check(
    t,
    Object.fromEntries(names.map((name) => [`server/${name}.test.ts`, FLAKY])),
  );
  assert.equal(lastLine, '6 passed, 6 failed, 0 skipped', output);
  assert.match(output, /^6 files failed, too many/m);
  assert.equal(status, 1);
});

test('a slow file is left out of a whole run, and runs with the long ones or when it is named', (t) => {
  const slow = 'test/faults/kill-after-answer.test.ts';
  const files = { [slow]: PASSES, 'test/faults/kill.test.ts': PASSES };
  const passed = (...args: string[]) => check(t, files, { args }).lastLine;
  assert.equal(passed(), '1 passed, 0 failed, 1 skipped');
  assert.equal(passed(slow), '1 passed, 0 failed, 1 skipped');
  assert.equal(passed('--long'), '1 passed, 0 failed, 1 skipped');
  assert.equal(passed('--faults'), '2 passed, 0 failed, 2 skipped');
  assert.ok(existsSync(join(import.meta.dirname, '..', slow)));
});

test('npm test leaves out what starts programs and is no journey; test:all runs that too, nothing twice', (t) => {
  const files = {
    'server/a.test.ts': PASSES,
    'server/b.test.ts': `// A process of its own: it moves.\n${PASSES}`,
    'server/c.test.ts': `import { spawn } from 'node:child_process';\n${PASSES}`,
    'server/d.test.ts': `import './blobs.conformance.ts';\nimport 'node:child_process';\n${PASSES}`,
    'server/blobs.conformance.ts': '',
    'test/acceptance/start-banner.test.ts': PASSES,
    'test/acceptance/other.test.ts': PASSES,
  };
  const { output, lastLine } = check(t, files);
  assert.equal(lastLine, '3 passed, 0 failed, 3 skipped', output);
  assert.match(output, /^took \d+ s and \d+ s of processors, of which there are \d+; other programs took/m);
  assert.equal(check(t, files, { args: ['--all'] }).lastLine, '6 passed, 0 failed, 6 skipped');
});
