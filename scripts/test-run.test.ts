import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Outcome, TestRunOptions } from './test-run.ts';

const directory = mkdtempSync(join(tmpdir(), 'test-run-'));
after(() => rmSync(directory, { recursive: true }));

const FILES: Readonly<Record<string, string>> = {
  'mixed.test.mjs': `
    import { describe, test } from 'node:test';
    describe('suite', () => {
      test('passes', () => {});
      test('is skipped', { skip: 'no such program' }, () => {});
      test('skips itself', (t) => t.skip('not root'));
      test('lacks a package', { skip: 'no such program: curable' }, () => {});
      test('fails', () => { console.error('a child said why'); throw new Error('boom'); });
      describe('inner', () => test('passes too', () => {}));
    });`,
  'broken.test.mjs': 'console.error("about to break"); throw new Error("at import");',
  'empty.test.mjs': '',
  'killed.test.mjs': "process.kill(process.pid, 'SIGKILL');",
  'hangs.test.mjs':
    "import { test } from 'node:test'; test('hangs', () => new Promise((r) => setTimeout(r, 60000)));",
  'leaks.test.mjs':
    "import { test } from 'node:test'; test('leaks', () => void setInterval(() => {}, 1000));",
};
for (const [name, text] of Object.entries(FILES)) writeFileSync(join(directory, name), text);

/** A run of node:test cannot start inside another, so it has a process of its own. */
function outcomeOf(name: string, more: Partial<TestRunOptions> = {}): Outcome {
  const script = `
    import { runTestFile } from ${JSON.stringify(fileURLToPath(new URL('./test-run.ts', import.meta.url)))};
    const curable = (reason) => /curable/.test(reason) ? 'some-package' : undefined;
    const file = ${JSON.stringify(join(directory, name))};
    const options = { timeoutMs: 2000, env: process.env, curable, ...${JSON.stringify(more)} };
    const outcome = await runTestFile(file, options);
    console.log(JSON.stringify(outcome));
    process.exit();`;
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const options = { cwd: directory, encoding: 'utf8', env, timeout: 30_000 } as const;
  const driver = join(directory, 'driver.mjs');
  writeFileSync(driver, script);
  const { stdout, stderr } = spawnSync(process.execPath, [driver], options);
  assert.notEqual(stdout, '', stderr);
  return JSON.parse(stdout);
}

describe('a test run', () => {
  test('counts tests, not suites, and names every failure and skip', () => {
    const { passed, failures, skips } = outcomeOf('mixed.test.mjs');
    assert.equal(passed, 2);
    assert.deepEqual(skips, [
      { name: 'mixed.test.mjs › suite › is skipped', reason: 'no such program' },
      { name: 'mixed.test.mjs › suite › skips itself', reason: 'not root' },
    ]);
    assert.equal(failures.length, 2);
    const [lacking, failed] = failures;
    assert.equal(lacking?.name, 'mixed.test.mjs › suite › lacks a package');
    assert.match(
      lacking?.error ?? '',
      /^skipped although the set-up installs some-package on this host \(no/,
    );
    assert.equal(failed?.name, 'mixed.test.mjs › suite › fails');
    assert.match(failed?.error ?? '', /^Error: boom\n\s+at .*mixed\.test\.mjs[\s\S]*a child said why/);
  });

  for (const [name, said] of [
    ['broken.test.mjs', /^broken\.test\.mjs: [\s\S]*about to break[\s\S]*at import/],
    ['empty.test.mjs', /^empty\.test\.mjs: this file contains no test/],
    ['killed.test.mjs', /^killed\.test\.mjs: its process was killed by SIGKILL/],
    ['hangs.test.mjs', /^hangs\.test\.mjs › hangs: [\s\S]*timed out after 2000ms/],
  ] as const) {
    test(`${name} is one failure`, () => {
      const { passed, failures } = outcomeOf(name);
      assert.deepEqual([passed, failures.length], [0, 1]);
      assert.match(failures.map(({ name, error }) => `${name}: ${error}`).join(), said);
    });
  }

  test('a file whose tests pass but which never ends is a failure', () => {
    const { passed, failures } = outcomeOf('leaks.test.mjs');
    assert.equal(passed, 1);
    assert.deepEqual(
      failures.map(({ name }) => name),
      ['leaks.test.mjs'],
    );
    assert.match(failures[0]?.error ?? '', /did not finish within 4000 ms/);
    const sooner = outcomeOf('leaks.test.mjs', { timeoutMs: 600_000, lingerMs: 500 });
    assert.equal(sooner.passed, 1);
    assert.match(sooner.failures[0]?.error ?? '', /its tests have ended, and it has not/);
  });
});
