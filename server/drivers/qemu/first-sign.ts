/** Whether a guest does anything at all once its processor was told to run. */
import { setTimeout as sleep } from 'node:timers/promises';
import { consoleBytes } from './guest-console.ts';
import type { GuestRun } from './guest-run.ts';
import { cpuTime, diskFigures } from './sampling.ts';

export interface FirstSignOptions {
  /** The guest's. */
  readonly folder: string;
  /** Size of the console's log before this run, bytes. */
  readonly logBytes: number;
  /** Of processor time: on a busy host a guest has its time all the same. */
  readonly withinCpuMs: number;
  /** Of any time. */
  readonly withinMs: number;
  /** Aborted: nobody wants to know any more. */
  readonly signal: AbortSignal;
}

const STEP_MS = 500;

/**
 * True as soon as the guest wrote to its console or read its disk, which the firmware does before all else.
 * A guest that did neither in that time executes nothing, or a thousand times too slowly; as it cannot have
 * written anything either, ending it loses nothing. Also true when the process ends, or nobody wants to know:
 * nothing is to be done.
 */
export async function showsLife(run: GuestRun, options: FirstSignOptions): Promise<boolean> {
  const { folder, logBytes, withinCpuMs, withinMs, signal } = options;
  for (let waited = 0; ; waited += STEP_MS) {
    if (signal.aborted || !run.isAlive || consoleBytes(folder) !== logBytes) return true;
    const disk = await diskFigures(run).catch(() => null);
    if (disk !== null && ((disk.read ?? 0) > 0 || (disk.write ?? 0) > 0)) return true;
    const cpuMs = await cpuTime(run).catch(() => null);
    if (waited >= withinMs || (cpuMs ?? 0) >= withinCpuMs) return signal.aborted || !run.isAlive;
    await sleep(STEP_MS, undefined, { signal, ref: false }).catch(() => {});
  }
}
