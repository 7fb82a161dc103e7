/** Ends a run, gently first, then by force. */
import type { StopMethod } from '../../compute/hypervisor.ts';
import { AppError } from '../../platform/errors.ts';
import { signalProcess } from '../host-process/process-identity.ts';
import type { GuestRun } from './guests/guest-run.ts';

/** A guest that still boots misses the button, so it is pressed again. */
const PRESS_AGAIN_MS = 3000;
const QMP_MS = 1500;
const QUIT_MS = 4000;
const TERMINATE_MS = 3000;
const KILL_MS = 3000;

/**
 * Resolves with what ended it, after `graceMs` and 12 s at most. Throws `internal_error` if even SIGKILL did
 * not end it: the process hangs in the kernel.
 */
export async function stopRun(run: GuestRun, graceMs: number, signal?: AbortSignal): Promise<StopMethod> {
  run.isStopping = true;
  try {
    if (await askGuest(run, graceMs, signal)) return 'guest';
    run.command('quit', {}, QMP_MS).catch(() => {});
    if (await run.waitGone(QUIT_MS)) return 'quit';
    signalProcess(run.identity, 'SIGTERM');
    if (await run.waitGone(TERMINATE_MS)) return 'terminate';
    signalProcess(run.identity, 'SIGKILL');
    if (await run.waitGone(KILL_MS)) return 'kill';
    throw doesNotEnd();
  } catch (error) {
    run.isStopping = false;
    throw error;
  }
}

/** Presses the power button until the guest ends, the time is over, or the caller is gone. */
async function askGuest(run: GuestRun, graceMs: number, signal?: AbortSignal): Promise<boolean> {
  if (graceMs <= 0 || signal?.aborted) return !run.isAlive;
  const status = await run.status(QMP_MS).catch(() => 'unknown');
  // A paused guest does not react to the power button.
  if (status !== 'running') return !run.isAlive;
  for (let left = graceMs; left > 0 && !signal?.aborted; left -= PRESS_AGAIN_MS) {
    run.command('system_powerdown', {}, QMP_MS).catch(() => {});
    if (await run.waitGone(Math.min(left, PRESS_AGAIN_MS), signal)) return true;
  }
  return false;
}

export function doesNotEnd(): AppError {
  return new AppError('internal_error', 'the process of the virtual machine does not end');
}
