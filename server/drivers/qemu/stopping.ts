/** Ends a run, from gentle to hard. */
import type { StopMeans } from '../../compute/hypervisor.ts';
import { AppError } from '../../errors.ts';
import type { GuestRun } from './guest-run.ts';
import { runStatus } from './launch.ts';
import { signalProcess } from './processes.ts';

/** A guest that still boots misses the button, so it is pressed again. */
const PRESS_AGAIN_MS = 3000;
const QMP_MS = 1500;
const QUIT_MS = 4000;
const TERMINATE_MS = 3000;
const KILL_MS = 3000;

/**
 * Resolves with what ended it, after `graceMs` and 12 s at most. Throws `internal_error` when even SIGKILL
 * did not: the process hangs in the kernel.
 */
export async function stopRun(run: GuestRun, graceMs: number, hurry?: AbortSignal): Promise<StopMeans> {
  run.isStopping = true;
  try {
    if (await askGuest(run, graceMs, hurry)) return 'guest';
    run.command('quit', {}, QMP_MS).catch(() => {});
    if (await run.waitGone(QUIT_MS)) return 'quit';
    signalProcess(run.identity, 'SIGTERM');
    if (await run.waitGone(TERMINATE_MS)) return 'terminate';
    signalProcess(run.identity, 'SIGKILL');
    if (await run.waitGone(KILL_MS)) return 'kill';
    throw new AppError('internal_error', 'the process of the virtual machine does not end');
  } catch (error) {
    run.isStopping = false;
    throw error;
  }
}

/** Presses the power button until the guest goes, its time is over, or nobody wants to wait for it. */
async function askGuest(run: GuestRun, graceMs: number, hurry?: AbortSignal): Promise<boolean> {
  if (graceMs <= 0 || hurry?.aborted) return !run.isAlive;
  const status = await runStatus(run, QMP_MS).catch(() => 'unknown');
  // Without a running processor nobody hears the button.
  if (status !== 'running') return !run.isAlive;
  for (let left = graceMs; left > 0 && !hurry?.aborted; left -= PRESS_AGAIN_MS) {
    run.command('system_powerdown', {}, QMP_MS).catch(() => {});
    if (await run.waitGone(Math.min(left, PRESS_AGAIN_MS), hurry)) return true;
  }
  return false;
}
