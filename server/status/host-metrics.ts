/** Utilization of the whole host, not only of this process. Never blocks the event loop. */
import { readFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { cpus } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { type Beat, onBeat } from '../platform/background/beat.ts';
import type { Clock } from '../platform/clock.ts';
import { readHostMemory } from '../platform/host/host-facts.ts';
import type { Meters } from '../platform/prometheus.ts';

export interface HostUsage {
  /** Busy share of all cores in the last ten seconds, 0–100, one decimal. */
  readonly cpu: number;
  /**
   * Memory that no program can allocate without swapping or exceeding one of our limits, 0–100, one decimal.
   */
  readonly memory: number;
  /**
   * Utilization of the file system that holds the data directory, 0–100, one decimal, as `df` counts it; null
   * when it does not answer.
   */
  readonly disk: number | null;
}

export interface HostMetricsDeps {
  readonly clock: Clock;
  readonly dataDir: string;
}

interface DiskFigures {
  readonly percent: number;
  /** For this process: without the file system's share reserved for root. */
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly at: number;
}

interface CpuSample extends CpuTicks {
  readonly at: number;
}

const SAMPLE_MS = 1000;
const WINDOW_MS = 10_000;
const DISK_EVERY_MS = 5000;
/** An older figure is not current: the disk hangs. */
const DISK_STALE_MS = 60_000;
const FIRST_DISK_WAIT_MS = 1000;

export class HostMetrics {
  readonly #deps: HostMetricsDeps;
  readonly #samples: CpuSample[] = [];
  #beat: Beat | undefined;
  #ticks: CpuTicks = { busy: 0, total: 0 };
  #disk: DiskFigures | undefined;
  #diskAskedAt = Number.NEGATIVE_INFINITY;
  #diskAnswer: Promise<void> | undefined;

  constructor(deps: HostMetricsDeps) {
    this.#deps = deps;
  }

  /** Starts sampling. Resolves after the first disk figure, or after a second. */
  async start(): Promise<void> {
    if (this.#beat !== undefined) return;
    this.#samples.push(this.#readCpu());
    this.#beat = onBeat(SAMPLE_MS, () => this.#tick());
    let giveUp: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      giveUp = setTimeout(resolve, FIRST_DISK_WAIT_MS);
    });
    await Promise.race([this.#refreshDisk(), patience]);
    clearTimeout(giveUp);
  }

  stop(): void {
    this.#beat?.stop();
    this.#beat = undefined;
    this.#samples.length = 0;
  }

  /** Current utilization. Before `start`, cpu is the average since the host booted. */
  read(): HostUsage {
    const { totalBytes, availableBytes } = readHostMemory();
    return {
      cpu: this.#cpuPercent(),
      memory: percent(totalBytes - availableBytes, totalBytes),
      disk: this.disk?.percent ?? null,
    };
  }

  /** The file system that holds the data directory; undefined when it does not answer. */
  get disk(): Omit<DiskFigures, 'at'> | undefined {
    const disk = this.#disk;
    if (disk === undefined) return undefined;
    return this.#deps.clock.monotonic() - disk.at < DISK_STALE_MS ? disk : undefined;
  }

  #tick(): void {
    const sample = this.#readCpu();
    this.#samples.push(sample);
    while (this.#samples.length > 2 && sample.at - (this.#samples[0]?.at ?? 0) > WINDOW_MS)
      this.#samples.shift();
    if (sample.at - this.#diskAskedAt >= DISK_EVERY_MS) void this.#refreshDisk();
  }

  #readCpu(): CpuSample {
    try {
      this.#ticks = readCpuTicks();
    } catch {
      // Keeps the last ticks while no file can be opened.
    }
    return { at: this.#deps.clock.monotonic(), ...this.#ticks };
  }

  #cpuPercent(): number {
    const now = this.#readCpu();
    const before = this.#samples[0];
    // The kernel counts in ticks of 10 ms: a shorter window is imprecise.
    if (before === undefined || now.total <= before.total) return percent(now.busy, now.total);
    return percent(now.busy - before.busy, now.total - before.total);
  }

  /** One query at a time: a hung disk blocks one thread of the pool, not all. */
  #refreshDisk(): Promise<void> {
    this.#diskAnswer ??= this.#askDisk().finally(() => {
      this.#diskAnswer = undefined;
    });
    return this.#diskAnswer;
  }

  async #askDisk(): Promise<void> {
    this.#diskAskedAt = this.#deps.clock.monotonic();
    try {
      const { blocks, bfree, bavail, bsize } = await statfs(this.#deps.dataDir);
      const used = blocks - bfree;
      this.#disk = {
        percent: percent(used, used + bavail),
        freeBytes: bavail * bsize,
        totalBytes: blocks * bsize,
        at: this.#deps.clock.monotonic(),
      };
    } catch {
      this.#disk = undefined;
    }
  }
}

function percent(part: number, whole: number): number {
  if (whole <= 0) return 0;
  return Math.min(100, Math.max(0, Math.round((part / whole) * 1000) / 10));
}

interface CpuTicks {
  /** Busy time of all cores since the host booted, in the system's unit. */
  readonly busy: number;
  readonly total: number;
}

/**
 * Reads the first line of /proc/stat (proc(5)): cpu user nice system idle iowait irq softirq steal guest
 * guest_nice, where both guests are part of user and nice. Waiting for a disk counts as idle, time stolen
 * by a hypervisor as busy.
 */
export function parseCpuTicks(stat: string): CpuTicks {
  const fields = (stat.split('\n', 1)[0] ?? '').trim().split(/\s+/).slice(1).map(Number);
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] = fields;
  const busy = user + nice + system + irq + softirq + steal;
  return { busy, total: busy + idle + iowait };
}

function readCpuTicks(): CpuTicks {
  if (process.platform !== 'linux') return portableCpuTicks();
  return parseCpuTicks(readFileSync('/proc/stat', 'latin1'));
}

function portableCpuTicks(): CpuTicks {
  const times = cpus().map((cpu) => cpu.times);
  const idle = times.reduce((sum, time) => sum + time.idle, 0);
  const busy = times.reduce((sum, time) => sum + time.user + time.nice + time.sys + time.irq, 0);
  return { busy, total: busy + idle };
}

/** Measures from start() to stop(). Costs nothing while idle: no timer wakes the process. */
export class EventLoopDelay {
  readonly #histogram = monitorEventLoopDelay({ samplePerIteration: true });

  start(): void {
    this.#histogram.enable();
    // The first sample covers the time before it, including idle time.
    setImmediate(() => setImmediate(() => this.#histogram.reset()));
  }

  stop(): void {
    this.#histogram.disable();
  }

  /** 99th percentile of the delay of all turns so far; 0 before the first. */
  get p99Seconds(): number {
    return this.#histogram.percentile(99) / 1e9;
  }

  get maxSeconds(): number {
    // An empty histogram's maximum is 0.
    return this.#histogram.max / 1e9;
  }
}

/** Starts measuring and adds the gauges to /metrics. The caller stops it. */
export function gaugeLoopDelay(meters: Meters): EventLoopDelay {
  const delay = new EventLoopDelay();
  delay.start();
  meters.gauge('cloudlet_event_loop_delay_p99_seconds', {
    help: 'Duration of an event loop turn, 99th percentile since the start',
    type: 'gauge',
    read: () => delay.p99Seconds,
  });
  meters.gauge('cloudlet_event_loop_delay_max_seconds', {
    help: 'Longest turn of the event loop since the start',
    type: 'gauge',
    read: () => delay.maxSeconds,
  });
  return delay;
}
