import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../../testing/eventually.ts';
import { ENDED, KeeperShells, type Launch, launchScript } from './keeper-shells.ts';
import { hostBootId, isThere, parseStat, RUN } from './process-identity.ts';
import { readEnding } from './running-process.ts';

const SHELLS = new URL('./keeper-shells.ts', import.meta.url).href;
const AWKWARD = ["it's", '', 'two  words', '$HOME `id` \\', '"', 'a\nb', '*', 'é', "''", '#no', '-n'];

describe('the shells that wait for processes', () => {
  let root: string;
  let folder: string;
  let log: string;
  before(() => {
    root = mkdtempSync(join(tmpdir(), "cloudlet-shell's "));
    folder = join(root, "it's $HOME");
    log = join(folder, 'log');
    mkdirSync(join(folder, 'work'), { recursive: true });
  });
  after(() => rmSync(root, { recursive: true, force: true }));
  const launchOf = (command: string, ...args: string[]): Launch => ({
    command,
    args,
    env: { LANG: 'C' },
    namespaces: [],
    view: null,
    folder: join(folder, 'work'),
    hasSession: false,
    prefix: [],
    limits: ['ulimit -c 0'],
    groupFile: null,
    keeper: { folder, log: 'log' },
    endsWithUs: false,
    bootId: hostBootId(),
  });

  test('the one at hand is taken; of one that died meanwhile nobody hears', async () => {
    const shells = new KeeperShells();
    try {
      shells.refill();
      shells.refill();
      const kept = await eventually(() => keepersOf(process.pid)[0]);
      const shell = await shells.take();
      assert.equal(shell.child.pid, kept);
      assert.equal((await shell.run('{ echo $$ >&3; exit; }\n')).text, `${kept}\n`);
      shells.refill();
      const killed = await eventually(() => keepersOf(process.pid).find((pid) => pid !== kept));
      process.kill(killed, 'SIGKILL');
      while (isThere(killed));
      assert.equal((await (await shells.take()).run('{ echo here >&3; exit; }\n')).text, 'here\n');
    } finally {
      shells.close();
    }
  });

  test('what it runs gets its words as they are, its folder, one variable, and an end that is noted', async () => {
    const shells = new KeeperShells();
    shells.refill();
    try {
      const lines = 'pwd; tr "\\0" "\\n" </proc/$$/environ; ls /proc/$$/fd; printf "%s|" "$@"; exit 7';
      const script = launchScript(launchOf('/bin/sh', '-c', lines, 'sh', ...AWKWARD));
      const { stat } = await (await shells.take()).run(script);
      const ending = await eventually(() => readEnding(join(folder, ENDED)));
      assert.deepEqual([ending.pid, ending.status], [parseStat(stat ?? '')?.pid, 7]);
      assert.equal(readFileSync(join(folder, RUN), 'latin1'), `${hostBootId()} ${stat}\n`);
      const [where, environment, ...rest] = readFileSync(log, 'utf8').split('\n');
      assert.deepEqual([where, environment], [join(folder, 'work'), 'LANG=C']);
      assert.equal(rest.join('\n'), `0\n1\n2\n${AWKWARD.join('|')}|`);
    } finally {
      shells.close();
    }
  });

  test('of a script that breaks off nothing is run', () => {
    const mark = join(root, 'mark');
    const script = launchScript(launchOf('/bin/touch', mark));
    for (const file of [join(folder, ENDED), log]) rmSync(file, { force: true });
    const run = (input: string) =>
      spawnSync('/bin/sh', ['-s'], { input, stdio: ['pipe', 'ignore', 'ignore', 'pipe'] });
    for (let end = 0; end < script.length - 2; end += 23) run(script.slice(0, end));
    assert.deepEqual([mark, log, join(folder, ENDED)].filter(existsSync), []);
    run(script);
    assert.ok(existsSync(mark));
  });

  test('the one at hand ends when we do, however we end, and does not keep us', async () => {
    for (const ending of ['process.kill(process.pid, "SIGKILL")', 'process.exit()', '']) {
      const script = `
        import { KeeperShells } from ${JSON.stringify(SHELLS)};
        const shells = new KeeperShells();
        shells.refill();
        process.stdin.once('data', () => { process.stdin.destroy(); ${ending} });`;
      const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
        stdio: ['pipe', 'inherit', 'inherit'],
      });
      const keeper = await eventually(() => keepersOf(child.pid ?? 0)[0]);
      child.stdin.write('end');
      await once(child, 'exit');
      await eventually(() => !isThere(keeper));
    }
  });

  test('none is kept after the close', async () => {
    const shells = new KeeperShells();
    shells.refill();
    await eventually(() => keepersOf(process.pid).length === 1);
    shells.close();
    await eventually(() => keepersOf(process.pid).length === 0);
    shells.refill();
    assert.deepEqual(keepersOf(process.pid), []);
  });
});

/** Shells that this process keeps ready, and that only wait. */
function keepersOf(parent: number): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      const [, of] = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
      return of === String(parent) && readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith('/bin/sh');
    } catch {
      return false;
    }
  });
}
