import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { withoutOthers } from './keeper-shells.ts';

test('of what a program would inherit it gets only what it is meant to, and no environment', () => {
  const fd = openSync('/dev/null', 'r');
  try {
    const foreign = (last: number) => Array.from({ length: last - 3 }, () => fd);
    const run = (last: number, words: readonly [string, string[]]) =>
      spawnSync(...words, { stdio: ['ignore', 'pipe', 'inherit', fd, ...foreign(last)], encoding: 'utf8' });
    const list = ['/bin/sh', '-c', 'ls /proc/$$/fd; echo "$$ $SECRET"'];
    const inherited = run(60, ['/bin/sh', list.slice(1)]).stdout;
    assert.ok(inherited.includes('\n60\n'), 'they would all be passed on');
    process.env.SECRET = 'secret';
    const { stdout, pid } = run(60, withoutOthers(list));
    assert.equal(stdout, `0\n1\n2\n3\n${pid} \n`);
  } finally {
    delete process.env.SECRET;
    closeSync(fd);
  }
});

test('the shell in between runs no start-up file, whatever its input is', () => {
  const home = mkdtempSync(join(tmpdir(), 'cloudlet-home-'));
  try {
    for (const name of ['.bashrc', '.profile', '.bash_profile'])
      writeFileSync(join(home, name), 'echo started >&2');
    // Bash assumes a remote caller if standard input is a socket, and then reads its files.
    const [program, words] = withoutOthers(['/bin/cat']);
    const { stdout, stderr } = spawnSync(program, words, {
      input: 'in',
      env: { HOME: home },
      encoding: 'utf8',
    });
    assert.deepEqual([stdout, stderr], ['in', '']);
  } finally {
    rmSync(home, { recursive: true });
  }
});
