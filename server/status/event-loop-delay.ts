/** How long one turn of the event loop takes: what every request waits beside its own work. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Meters } from '../platform/prometheus.ts';

/** Measures from start() to stop(). While nothing happens it costs nothing: it wakes nobody with a timer. */
export class EventLoopDelay {
  readonly #histogram = monitorEventLoopDelay({ samplePerIteration: true });

  start(): void {
    this.#histogram.enable();
    // What the first sample holds is the time before it, idle time included.
    setImmediate(() => setImmediate(() => this.#histogram.reset()));
  }

  stop(): void {
    this.#histogram.disable();
  }

  /** The delay of all turns so far; 0 before the first. */
  get p99Seconds(): number {
    return this.#histogram.percentile(99) / 1e9;
  }

  get maxSeconds(): number {
    // An empty histogram's maximum is 0.
    return this.#histogram.max / 1e9;
  }
}

/** Begins to measure, and shows it in /metrics. The caller stops it. */
export function gaugeLoopDelay(meters: Meters): EventLoopDelay {
  const delay = new EventLoopDelay();
  delay.start();
  meters.gauge('cloudlet_event_loop_delay_p99_seconds', {
    help: 'How long one turn of the event loop took, 99th percentile since the start',
    type: 'gauge',
    read: () => delay.p99Seconds,
  });
  meters.gauge('cloudlet_event_loop_delay_max_seconds', {
    help: 'How long one turn of the event loop took at worst since the start',
    type: 'gauge',
    read: () => delay.maxSeconds,
  });
  return delay;
}
