import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { FileOutcome, TestRunOptions } from './test-run.ts';

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
  'hooks.test.mjs': `
    import { after, before, beforeEach, test } from 'node:test';
    let count = 0;
    const timer = setInterval(() => {}, 1000);
    before(() => count++);
    beforeEach(() => count++);
    after(() => clearInterval(timer));
    test('one', () => { if (count !== 2) throw new Error(count); });
    test('two', () => { if (count !== 3) throw new Error(count); });`,
  'tidy.test.mjs': "import { test } from 'node:test'; test('tidy', () => {});",
  'exits.test.mjs':
    "import { test } from 'node:test'; test('one', () => {}); test('exits', () => process.exit(0));",
  'spins.test.mjs': "import { test } from 'node:test'; test('spins', () => { for (;;); });",
  'moves.test.mjs': `
    import { test } from 'node:test';
    test('moves', () => { process.chdir('/'); process.env.MOVED = '1'; });`,
  'after.test.mjs': `
    import { after, test } from 'node:test';
    after(() => { throw new Error('the hook after the tests'); });
    test('one', () => {});`,
};
for (const [name, text] of Object.entries(FILES)) writeFileSync(join(directory, name), text);

/** A run of node:test cannot start inside another, so it has its own process. */
function outcomesOf(names: readonly string[], more: Partial<TestRunOptions> = {}): FileOutcome[] {
  const script = `
    import { runTestFiles } from ${JSON.stringify(fileURLToPath(new URL('./test-run.ts', import.meta.url)))};
    const curable = (reason) => /curable/.test(reason) ? 'some-package' : undefined;
    const files = ${JSON.stringify(names.map((name) => join(directory, name)))};
    const options = { timeoutMs: 2000, env: process.env, curable, ...${JSON.stringify(more)} };
    const outcomes = [];
    await runTestFiles(files, options, (outcome) => outcomes.push(outcome));
    console.log(JSON.stringify(outcomes));
    process.exit();`;
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const options = { cwd: directory, encoding: 'utf8', env, timeout: 60_000 } as const;
  const driver = join(directory, 'driver.mjs');
  writeFileSync(driver, script);
  const { stdout, stderr } = spawnSync(process.execPath, [driver], options);
  assert.notEqual(stdout, '', stderr);
  return JSON.parse(stdout);
}

function outcomeOf(name: string, more: Partial<TestRunOptions> = {}): FileOutcome {
  const [outcome] = outcomesOf([name], more);
  assert.ok(outcome);
  return outcome;
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

  const short = ({ file, passed, failures }: FileOutcome) => {
    const said = failures.map(({ name, error }) => `${name}: ${error}`);
    return [basename(file), passed, ...said] as const;
  };

  test('files that share a process are told apart, and each has hooks of its own', () => {
    const [mixed, hooks, empty, broken, tidy] = outcomesOf([
      'mixed.test.mjs',
      'hooks.test.mjs',
      'empty.test.mjs',
      'broken.test.mjs',
      'tidy.test.mjs',
    ]);
    assert.deepEqual(
      mixed?.failures.map(({ name }) => name),
      outcomeOf('mixed.test.mjs').failures.map(({ name }) => name),
    );
    assert.deepEqual([mixed?.passed, mixed?.skips.length], [2, 2]);
    assert.deepEqual(hooks && short(hooks), ['hooks.test.mjs', 2]);
    assert.match(empty?.failures[0]?.error ?? '', /^this file contains no test/);
    assert.match(
      String(broken && short(broken)),
      /^broken\.test\.mjs,0,broken\.test\.mjs › is loaded: [\s\S]*at import/,
    );
    assert.deepEqual(tidy && short(tidy), ['tidy.test.mjs', 1]);
  });

  for (const [name, passed, said] of [
    ['killed.test.mjs', 0, /its process was killed by SIGKILL/],
    ['exits.test.mjs', 0, /this file ended the process that it shares with others/],
    ['spins.test.mjs', 0, /did not finish within 4000 ms/],
    ['hangs.test.mjs', 0, /hangs\.test\.mjs › hangs: [\s\S]*timed out after 2000ms/],
    ['leaks.test.mjs', 1, /this file leaves open: Timeout/],
    ['moves.test.mjs', 1, /leaves the working directory changed, and leaves the environment changed/],
    ['after.test.mjs', 1, /the hook after the tests/],
  ] as const) {
    test(`${name} is one failure among others, and takes no result with it`, () => {
      // Open resources get time to close, and this test does not measure that time.
      const options = name === 'leaks.test.mjs' ? { timeoutMs: 60_000 } : {};
      const outcomes = outcomesOf(['hooks.test.mjs', name, 'tidy.test.mjs'], options).map(short);
      assert.equal(outcomes.length, 3, JSON.stringify(outcomes));
      assert.deepEqual(
        [outcomes[0], outcomes[2]],
        [
          ['hooks.test.mjs', 2],
          ['tidy.test.mjs', 1],
        ],
      );
      assert.deepEqual(outcomes[1]?.slice(0, 2), [name, passed]);
      assert.match(String(outcomes[1]?.slice(2)), said);
    });
  }
});
