import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { groupProcessorMs } from './start-progress.ts';
import { eventually } from './waiting.ts';

const skip = existsSync('/proc/self/stat') ? false : 'no /proc on this system';

test('the processor time of a process group counts its children', { skip }, async () => {
  const script = 'while :; do :; done & while :; do :; done';
  const child = spawn('sh', ['-c', script], { detached: true, stdio: 'ignore' });
  const pid = child.pid ?? 0;
  try {
    const first = await eventually('it has run', () => groupProcessorMs(pid));
    await eventually('it goes on', () => groupProcessorMs(pid) > first);
  } finally {
    process.kill(-pid, 'SIGKILL');
  }
  await eventually('it is gone', () => groupProcessorMs(pid) === 0);
});
