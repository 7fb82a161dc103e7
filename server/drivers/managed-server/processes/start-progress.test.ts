import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MS_PER_TICK, readStat } from '../../host-process/process-identity.ts';
import { StartProgress } from './start-progress.ts';

const skip = existsSync('/proc/self/stat') ? false : 'no /proc on this system';
const STUCK_MS = 30_000;
const STEP_MS = 500;

/** A clock controlled by the test: a busy host may need hours for a second of work here. */
function openClock() {
  let now = 0;
  const pass = (ms: number) => {
    now += ms;
  };
  return { clock: { monotonic: () => now }, pass };
}

const usedMs = (pid: number) => (readStat(pid)?.cpuTicks ?? 0) * MS_PER_TICK;

/** Waits for processor time of the process, however slow the host is. */
async function untilUsed(pid: number, ms: number): Promise<void> {
  while (usedMs(pid) < ms) await sleep(20);
}

test('a start that computes goes on for as long as it takes, in processes that it started too', {
  skip,
}, async () => {
  // The first process waits for the second, as with a server.
  const child = spawn('sh', ['-c', 'sh -c "while :; do :; done" & echo $!; wait'], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const worker = await new Promise<number>((resolve) =>
    child.stdout.once('data', (text) => resolve(Number(String(text)))),
  );
  const { clock, pass } = openClock();
  try {
    const progress = new StartProgress({ clock, pid: child.pid ?? 0, stuckMs: STUCK_MS });
    assert.equal(progress.isOver(), false, 'it has just begun');
    for (let round = 1; round <= 3; round++) {
      await untilUsed(worker, usedMs(worker) + STEP_MS + MS_PER_TICK);
      pass(STUCK_MS + 1);
      assert.equal(progress.isOver(), false, `round ${round}`);
    }
    process.kill(worker, 'SIGSTOP');
    pass(STUCK_MS + 1);
    progress.isOver();
    pass(STUCK_MS + 1);
    assert.equal(progress.isOver(), true, 'it computes no more');
  } finally {
    process.kill(-(child.pid ?? 0), 'SIGKILL');
  }
});

test('a start that only waits has failed after a while, and not before', { skip }, () => {
  const child = spawn('sleep', ['600'], { stdio: 'ignore' });
  const { clock, pass } = openClock();
  try {
    const progress = new StartProgress({ clock, pid: child.pid ?? 0, stuckMs: STUCK_MS });
    pass(STUCK_MS);
    assert.equal(progress.isOver(), false);
    pass(1);
    assert.equal(progress.isOver(), true);
  } finally {
    child.kill('SIGKILL');
  }
});
