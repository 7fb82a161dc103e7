import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Slots } from './test-run.ts';

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

/** A run of node:test cannot start inside another, so each is its own process. */
function outcomeOf(names: readonly string[]) {
  const files = names.map((name) => join(directory, name));
  const script = `
    import { runTests } from ${JSON.stringify(fileURLToPath(new URL('./test-run.ts', import.meta.url)))};
    const files = ${JSON.stringify(files)};
    const curable = (reason) => /curable/.test(reason) ? 'some-package' : undefined;
    const outcome = await runTests({ files, concurrency: 2, timeoutMs: 2000, env: process.env, curable });
    console.log(JSON.stringify(outcome));
    process.exit();`;
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const options = { cwd: directory, encoding: 'utf8', env, timeout: 30_000 } as const;
  const driver = join(directory, 'driver.mjs');
  writeFileSync(driver, script);
  const { stdout, stderr } = spawnSync(process.execPath, [driver], options);
  assert.notEqual(stdout, '', stderr);
  return JSON.parse(stdout) as {
    passed: number;
    failures: { name: string; error: string }[];
    skips: { name: string; reason: string }[];
  };
}

describe('a test run', () => {
  test('counts tests, not suites, and names every failure and skip', () => {
    const { passed, failures, skips } = outcomeOf(['mixed.test.mjs']);
    assert.equal(passed, 2);
    assert.deepEqual(skips, [
      { name: 'mixed.test.mjs › suite › is skipped', reason: 'no such program' },
      { name: 'mixed.test.mjs › suite › skips itself', reason: 'not root' },
    ]);
    assert.equal(failures.length, 2);
    const [lacking, failed] = failures;
    assert.equal(lacking?.name, 'mixed.test.mjs › suite › lacks a package');
    assert.match(lacking?.error ?? '', /^skipped, though the set-up installs some-package on this host \(no/);
    assert.equal(failed?.name, 'mixed.test.mjs › suite › fails');
    assert.match(failed?.error ?? '', /^Error: boom\n\s+at .*mixed\.test\.mjs[\s\S]*a child said why/);
  });

  test('a file that dies or is killed, one that hangs and one without a test are failures', () => {
    const names = ['broken.test.mjs', 'empty.test.mjs', 'hangs.test.mjs', 'killed.test.mjs'];
    const { passed, failures } = outcomeOf(names);
    assert.equal(passed, 0);
    const said = failures.map(({ name, error }) => `${name}: ${error}`).join('\n');
    assert.match(said, /broken\.test\.mjs: [\s\S]*about to break[\s\S]*at import/);
    assert.match(said, /empty\.test\.mjs: this file contains no test/);
    assert.match(said, /killed\.test\.mjs: its process was ended by SIGKILL/);
    assert.match(said, /hangs\.test\.mjs[\s\S]*timed out after 2000ms/);
  });

  test('a file whose tests pass but which never ends is a failure', () => {
    const { passed, failures } = outcomeOf(['leaks.test.mjs']);
    assert.equal(passed, 1);
    assert.deepEqual(
      failures.map(({ name }) => name),
      ['leaks.test.mjs'],
    );
    assert.match(failures[0]?.error ?? '', /did not end within 4000 ms/);
  });

  test('no files: nothing passed, nothing failed', () => {
    assert.deepEqual(outcomeOf([]), { passed: 0, failures: [], skips: [], files: [] });
  });
});

test('slots are never more than there are, and go to the lowest rank that waits', async () => {
  const slots = new Slots(2);
  const began: string[] = [];
  const take = (name: string, rank: number) => slots.take(rank).then(() => void began.push(name));
  const soon = () => new Promise((resolve) => setImmediate(resolve));
  for (const [name, rank] of [
    ['a', 2],
    ['b', 2],
    ['c', 2],
    ['d', 0],
    ['e', 2],
    ['f', 1],
  ] as const) {
    void take(name, rank);
  }
  await soon();
  assert.deepEqual(began, ['a', 'b']);
  for (let i = 0; i < 4; i++) {
    slots.give();
    await soon();
  }
  assert.deepEqual(began, ['a', 'b', 'd', 'f', 'c', 'e']);
  slots.give();
  slots.give();
  await Promise.all([take('g', 0), take('h', 0)]);
  void take('i', 0);
  await soon();
  assert.equal(began.at(-1), 'h');
});
