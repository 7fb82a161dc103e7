/** Concurrent set-ups of one clone, and interrupted ones. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { eventually } from '../test/harness/waiting.ts';
import { type Clone, makeClone, PARENT } from './setup-clone.ts';

after(() => rmSync(PARENT, { recursive: true }));

/** A set-up in its own process group, as in a terminal, and its output. */
function begin({ directory, env }: Clone) {
  const words = [join(directory, 'scripts/setup.js'), 'start'];
  const child: ChildProcess = spawn(process.execPath, words, { env, detached: true });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (piece: string) => {
      said += piece;
    });
  return {
    said: () => said,
    /** On a fast host it may be done already: then there is nothing to interrupt. */
    interrupt: () => {
      if (child.exitCode === null) process.kill(-(child.pid ?? 0), 'SIGINT');
    },
    ended: once(child, 'close').then(([code]) => code as number | null),
  };
}

/** Has a folder like the real one, and waits for a file before it is done. */
const SLOW_BUILDER = `import { existsSync, mkdirSync, renameSync, symlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
const [stamp] = process.argv.slice(2);
const folder = \`build/server/.\${stamp}-\${process.pid}\`;
mkdirSync(folder, { recursive: true });
while (!existsSync('may-end')) await sleep(50);
renameSync(folder, \`build/server/\${stamp}\`);
symlinkSync(stamp, 'build/server/current');`;

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const lockOf = ({ directory }: Clone) => join(directory, 'build/setup.lock');

describe('set-ups of one clone', () => {
  test('the second waits for the first, says so, and goes on when that ends', async () => {
    const clone = makeClone();
    const other = spawn('sleep', ['600']);
    mkdirSync(join(clone.directory, 'build'));
    writeFileSync(lockOf(clone), String(other.pid));
    const second = begin(clone);
    const words = `  waiting for another set-up of this clone (process ${other.pid}) …\n`;
    await eventually('it says that it waits', () => second.said() === words);
    other.kill();
    assert.equal(await second.ended, 0, second.said());
    assert.equal(existsSync(lockOf(clone)), false);
  });

  test('of two in a fresh clone one installs, and both end well', async () => {
    const clone = makeClone();
    const both = [begin(clone), begin(clone)];
    const codes = await Promise.all(both.map(({ ended }) => ended));
    const said = both.map((each) => each.said()).join('');
    assert.deepEqual(codes, [0, 0], said);
    assert.equal(said.match(/installing dependencies … done/g)?.length, 1, said);
  });

  test('one that was killed holds up none, even where nobody asks for its exit code', async (t) => {
    const clone = makeClone();
    mkdirSync(join(clone.directory, 'build'));
    writeFileSync(lockOf(clone), String(spawnSync('sh', ['-c', ':']).pid));
    assert.match(clone.setUp('start').output, /^ {2}installing dependencies/);
    // In containers the first process often does not reap: the dead one stays in the table of processes.
    const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 600']);
    t.after(() => parent.kill());
    const [pid] = await once(parent.stdout.setEncoding('utf8'), 'data');
    writeFileSync(lockOf(clone), String(pid).trim());
    assert.deepEqual(clone.setUp('start'), { code: 0, output: '' });
  });

  test('a lock that a full disk left empty, or whose number another process has now, holds up none', async (t) => {
    const clone = makeClone();
    mkdirSync(join(clone.directory, 'build'));
    writeFileSync(lockOf(clone), '');
    utimesSync(lockOf(clone), 0, 0);
    assert.match(clone.setUp('start').output, /^ {2}installing dependencies/);
    if (!existsSync('/proc/self/stat')) return t.skip('the start of a process is read from /proc');
    // This process did not start with the host.
    writeFileSync(lockOf(clone), `${process.pid} 0`);
    assert.deepEqual(clone.setUp('start'), { code: 0, output: '' });
  });

  test('Ctrl+C while something is built: the next one builds it, and nothing half done stays', async () => {
    const clone = makeClone();
    for (const name of ['server', 'libs']) mkdirSync(join(clone.directory, name));
    writeFileSync(join(clone.directory, 'scripts/build-server.ts'), SLOW_BUILDER);
    const builds = () => readdirSync(join(clone.directory, 'build/server'));
    mkdirSync(join(clone.directory, 'build/server'), { recursive: true });
    const first = begin(clone);
    await eventually('it builds', () => builds().length > 0);
    const [half = ''] = builds();
    first.interrupt();
    assert.equal(await first.ended, null, first.said());
    assert.match(first.said(), /building server … $/);
    await eventually('its build ended with it', () => !isRunning(Number(half.split('-')[1])));
    writeFileSync(join(clone.directory, 'may-end'), '');
    const { code, output } = clone.setUp('start');
    assert.equal(code, 0, output);
    assert.match(output, /^ {2}building server … done/m);
    assert.deepEqual(builds().sort(), [half.slice(1, 33), 'current'].sort());
    assert.deepEqual(clone.setUp('start'), { code: 0, output: '' });
  });

  for (const point of ['build/setup.lock', 'node_modules', 'node_modules/.cloudlet-setup'])
    test(`Ctrl+C once there is ${point}: the next one completes`, async () => {
      const clone = makeClone();
      const first = begin(clone);
      await eventually(point, () => existsSync(join(clone.directory, point)));
      first.interrupt();
      await first.ended;
      const { code, output } = clone.setUp('start');
      assert.equal(code, 0, output);
      assert.doesNotMatch(output, /waiting/);
      assert.deepEqual(clone.setUp('start'), { code: 0, output: '' });
    });
});
