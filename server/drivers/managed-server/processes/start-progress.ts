/** Whether a slow-starting server still makes progress: by its CPU time, not the clock. */
import { readdirSync } from 'node:fs';
import type { Clock } from '../../../platform/clock.ts';
import { MS_PER_TICK, readProc, readStat } from '../../host-process/process-identity.ts';

/** Refusing our probes uses less processor time. */
const STEP_MS = 500;
/** A start that uses this much processor time is stuck in a loop. */
const MOST_MS = 30 * 60_000;

export interface StartProgressDeps {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** The first process of the server. */
  readonly pid: number;
  /** A start without progress for this long counts as stuck. */
  readonly stuckMs: number;
}

export class StartProgress {
  readonly #deps: StartProgressDeps;
  #usedMs = 0;
  #movedAt: number;

  constructor(deps: StartProgressDeps) {
    this.#deps = deps;
    this.#movedAt = deps.clock.monotonic();
  }

  /** Polled; true: the start has failed. */
  isOver(): boolean {
    const { clock, pid, stuckMs } = this.#deps;
    const now = clock.monotonic();
    // Reads all of /proc, so not for a server that has just started.
    if (now - this.#movedAt <= stuckMs) return false;
    const usedMs = treeMs(pid);
    if (usedMs - this.#usedMs >= STEP_MS) {
      this.#usedMs = usedMs;
      this.#movedAt = now;
    }
    return usedMs > MOST_MS || this.#movedAt !== now;
  }
}

/** Processor time of a process and its running child processes. */
function treeMs(pid: number): number {
  let ticks = 0;
  for (const next = [pid]; next.length > 0; ) {
    const one = next.pop() as number;
    ticks += readStat(one)?.cpuTicks ?? 0;
    const lists = threadsOf(one).map((tid) => readProc(`${one}/task/${tid}/children`)?.trim() ?? '');
    next.push(...lists.flatMap((list) => (list === '' ? [] : list.split(' ').map(Number))));
  }
  return ticks * MS_PER_TICK;
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}
