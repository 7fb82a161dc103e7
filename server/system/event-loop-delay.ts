/** How late the event loop runs timers: what every request waits beside its own work. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Meters } from './meters.ts';

const RESOLUTION_MS = 10;

/** Measures from start() to stop(). */
export class EventLoopDelay {
  readonly #histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });

  start(): void {
    this.#histogram.enable();
  }

  stop(): void {
    this.#histogram.disable();
  }

  /** Of all samples so far; 0 before the first. */
  get p99Seconds(): number {
    return toDelay(this.#histogram.percentile(99));
  }

  get maxSeconds(): number {
    // An empty histogram's maximum is 0.
    return toDelay(this.#histogram.max);
  }
}

/** Node records the time between two runs of its timer, of which the timer's own period is no delay. */
function toDelay(nanoseconds: number): number {
  return Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS) / 1000;
}

/** Begins to measure, and shows it in /metrics. The caller stops it. */
export function gaugeLoopDelay(meters: Meters): EventLoopDelay {
  const delay = new EventLoopDelay();
  delay.start();
  meters.gauge('cloudlet_event_loop_delay_p99_seconds', {
    help: 'How late the event loop ran, 99th percentile since the start',
    type: 'gauge',
    read: () => delay.p99Seconds,
  });
  meters.gauge('cloudlet_event_loop_delay_max_seconds', {
    help: 'How late the event loop ran at worst since the start',
    type: 'gauge',
    read: () => delay.maxSeconds,
  });
  return delay;
}
