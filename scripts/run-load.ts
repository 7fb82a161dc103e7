/** The load of this host during a run, which may explain a slow run. */
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg } from 'node:os';

/** In /proc/…/stat: USER_HZ, which is 100 on every Linux on which Node runs (man 5 proc). */
const TICK_MS = 10;

export class Processors {
  #idleMs = idleMs();
  #atMs = performance.now();

  /** Average number of idle processors since the last call. One that waits for a disk does not count. */
  idle(): number {
    const [idle, at] = [idleMs(), performance.now()];
    const processors = (idle - this.#idleMs) / (at - this.#atMs);
    [this.#idleMs, this.#atMs] = [idle, at];
    return processors;
  }
}

const idleMs = () => cpus().reduce((sum, { times }) => sum + times.idle, 0);
const busyMs = () =>
  cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);

/** Processor time of this process and of its ended descendants. */
function ownMs(): number {
  try {
    const text = readFileSync('/proc/self/stat', 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * TICK_MS, 0);
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
}

/** Since it was created. */
export class RunLoad {
  readonly #startMs = performance.now();
  readonly #busyMs = busyMs();

  tell(): string {
    const tookMs = performance.now() - this.#startMs;
    const mine = ownMs();
    const others = Math.max(0, busyMs() - this.#busyMs - mine);
    const count = availableParallelism();
    const seconds = (ms: number) => `${(ms / 1000).toFixed(0)} s`;
    const share = ((100 * others) / (tookMs * count)).toFixed(0);
    return (
      `took ${seconds(tookMs)} and ${seconds(mine)} of processors, of which there are ${count}; ` +
      `other programs took ${seconds(others)} (${share} %), and the load is ${(loadavg()[0] ?? 0).toFixed(1)}`
    );
  }
}
