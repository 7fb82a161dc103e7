/** Whether a slow-starting program still makes progress, however busy the host is. */
import { readdirSync, readFileSync } from 'node:fs';
import { patienceMs } from '../../server/platform/host/host-facts.ts';

/** Without processor time and output on an idle host, it is stuck. */
const STALLED_MS = 30_000;
/** A start takes about 2 s of the processor; one that uses this much is in an endless loop. */
const MAX_PROCESSOR_MS = 60_000;
/** In /proc/…/stat: USER_HZ, which is 100 on every Linux on which Node runs (man 5 proc). */
const TICK_MS = 10;
const LOOK_MS = 1000;

/** Processor time of all live processes of a process group, in milliseconds; 0 without /proc. */
export function groupProcessorMs(group: number): number {
  let ticks = 0;
  for (const entry of entriesOf('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const fields = statOf(entry);
    if (Number(fields[2]) === group) ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks * TICK_MS;
}

function entriesOf(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** From the state on, the third field in the manual. */
function statOf(pid: string): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}

interface ProgressLimits {
  /** Without processor time and output for this long, it is stuck. */
  readonly stalledMs: number;
  readonly mostProcessorMs: number;
}

export class StartProgress {
  readonly #group: number;
  readonly #limits: ProgressLimits;
  #outputLength = 0;
  #processorMs = 0;
  #movedAt = performance.now();
  #lookedAt = performance.now();

  /** The number of the starting process group. */
  constructor(group: number, limits: Partial<ProgressLimits> = {}) {
    this.#group = group;
    this.#limits = { stalledMs: STALLED_MS, mostProcessorMs: MAX_PROCESSOR_MS, ...limits };
  }

  /**
   * The reason why it will never be ready, or undefined: it still makes progress. `outputLength`: output so
   * far.
   */
  fault(outputLength: number): string | undefined {
    const now = performance.now();
    if (now - this.#lookedAt < LOOK_MS) return undefined;
    this.#lookedAt = now;
    const processorMs = groupProcessorMs(this.#group);
    if (processorMs !== this.#processorMs || outputLength !== this.#outputLength) this.#movedAt = now;
    [this.#processorMs, this.#outputLength] = [processorMs, outputLength];
    const { stalledMs, mostProcessorMs } = this.#limits;
    if (processorMs > mostProcessorMs) return `not ready after ${processorMs} ms of the processor`;
    if (now - this.#movedAt > patienceMs(stalledMs)) return `has done nothing for ${stalledMs} ms or more`;
    return undefined;
  }
}
