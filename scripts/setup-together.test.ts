/** Set-ups of one clone beside each other, and those that are cut short. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { eventually } from '../test/harness/waiting.ts';
import { type Clone, makeClone, PARENT } from './setup-clone.ts';

after(() => rmSync(PARENT, { recursive: true }));

/** A set-up in its own process group, as a terminal has it, and all that it says. */
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
    /** A fast host may be done already: then there is nothing to interrupt. */
    interrupt: () => {
      if (child.exitCode === null) process.kill(-(child.pid ?? 0), 'SIGINT');
    },
    ended: once(child, 'close').then(([code]) => code as number | null),
  };
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
    // In containers the first process often does not ask: the dead one stays in the table of processes.
    const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 600']);
    t.after(() => parent.kill());
    const [pid] = await once(parent.stdout.setEncoding('utf8'), 'data');
    writeFileSync(lockOf(clone), String(pid).trim());
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
