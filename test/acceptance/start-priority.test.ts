/** A cloud that runs as root gets the processor before others. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';

const skip = notInstalled('perl') || (process.getuid?.() === 0 ? false : 'only root may raise a process');

/** Nice values of the threads of a process, by their names. */
function threadsOf(pid: number): Map<string, number> {
  const path = `/proc/${pid}/task`;
  return new Map(
    readdirSync(path).map((tid) => [
      readFileSync(`${path}/${tid}/comm`, 'latin1').trim(),
      getPriority(Number(tid)),
    ]),
  );
}

test('the threads that answers wait for come first, the others are as usual', { skip }, async () => {
  // Tests themselves may run at another nice value.
  const wrapper = ['nice', '-n', String(-getPriority())];
  const cloud = await CloudProcess.start({ wrapper });
  try {
    // PostgreSQL writes without one of our threads.
    await eventually('they come first', () => {
      return getPriority(cloud.pid) === -10 && (threadsOf(cloud.pid).get('metadata') ?? -10) === -10;
    });
    const threads = threadsOf(cloud.pid);
    assert.equal(threads.get('libuv-worker'), 0, 'passwords are hashed there');
  } finally {
    await cloud.stop();
  }
});
