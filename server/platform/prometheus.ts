/** Counters, gauges and histograms in Prometheus' text format 0.0.4. */
import { type Clock, systemClock } from './clock.ts';

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60];

interface Histogram {
  /** Not cumulative; one more than BUCKETS_SECONDS, for larger values. */
  readonly counts: number[];
  sum: number;
  count: number;
}

interface Gauge {
  readonly help: string;
  readonly type: 'gauge' | 'counter';
  /** NaN: no value. */
  readonly read: () => number;
}

/** One value of a labelled series; `labels` in the declared order. */
export interface SeriesSample {
  readonly labels: readonly string[];
  readonly value: number;
}

interface Series {
  readonly help: string;
  readonly type: 'gauge' | 'counter';
  readonly labels: readonly string[];
  /** Public: its labels name no account and no resource. Default: only for operators. */
  readonly isPublic?: boolean;
  readonly read: () => readonly SeriesSample[];
}

/** A series whose samples are computed on demand, such as row counts. */
interface AskedSeries extends Omit<Series, 'read'> {
  /** A rejection leaves the series out. */
  readonly ask: () => Promise<readonly SeriesSample[]>;
}

/** /metrics is public, so expensive samples are computed at most this often. */
const ASK_EVERY_MS = 10_000;
/** A scrape waits at most this long, then shows the previous samples. */
const PATIENCE_MS = 2000;

/** Protocol of a request; libSQL's routes count as rest, `machine` is a published web server. */
export type Protocol = 'rest' | 's3' | 'machine';

export class Meters {
  readonly #clock: Clock;
  readonly #requests = new Map<string, RouteRequests>();
  readonly #gauges = new Map<string, Gauge>();
  readonly #series = new Map<string, Series & { readonly ready: () => Promise<void> }>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /**
   * Counts a finished request of a named operation. `status` 499: the client disconnected before a response.
   */
  observeRequest({ protocol, route, status }: FinishedRequest, seconds: number): void {
    const key = `${protocol} ${route}`;
    let known = this.#requests.get(key);
    if (known === undefined) {
      const counts = new Array<number>(BUCKETS_SECONDS.length + 1).fill(0);
      const labels = `route="${route}",protocol="${protocol}"`;
      known = { labels, statuses: new Map(), histogram: { counts, sum: 0, count: 0 } };
      this.#requests.set(key, known);
    }
    const { statuses, histogram } = known;
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    let slot = 0;
    while (slot < BUCKETS_SECONDS.length && seconds > (BUCKETS_SECONDS[slot] as number)) slot++;
    histogram.counts[slot] = (histogram.counts[slot] as number) + 1;
    histogram.sum += seconds;
    histogram.count++;
  }

  /** Adds a value that is read at each scrape. `name` as in Prometheus, unit last. */
  gauge(name: string, gauge: Gauge): void {
    this.#gauges.set(name, gauge);
  }

  /** Adds values by label, read at each scrape. */
  series(name: string, series: Series): void {
    this.#series.set(name, { ...series, ready: async () => {} });
  }

  /** Adds values by label that are computed at a scrape. */
  askedSeries(name: string, { ask, ...series }: AskedSeries): void {
    let samples: readonly SeriesSample[] = [];
    let askedAt = Number.NEGATIVE_INFINITY;
    let answer: Promise<void> | undefined;
    const ready = async () => {
      if (this.#clock.monotonic() - askedAt < ASK_EVERY_MS) return;
      answer ??= ask()
        .catch(() => [])
        .then((found) => {
          samples = found;
          askedAt = this.#clock.monotonic();
          answer = undefined;
        });
      await answer;
    };
    this.#series.set(name, { ...series, read: () => samples, ready });
  }

  /** The text. With `details`, includes the series for operators. */
  async render({ details = false } = {}): Promise<string> {
    const shown = [...this.#series].filter(([, { isPublic }]) => details || isPublic === true);
    await this.#asked(shown.map(([, { ready }]) => ready()));
    const lines: string[] = [];
    for (const [name, { help, type, read }] of this.#gauges) {
      const value = read();
      if (Number.isNaN(value)) continue;
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, `${name} ${value}`);
    }
    lines.push(
      '# HELP cloudlet_http_requests_total Completed requests',
      '# TYPE cloudlet_http_requests_total counter',
    );
    for (const { labels, statuses } of this.#requests.values()) {
      for (const [status, count] of statuses) {
        lines.push(`cloudlet_http_requests_total{${labels},status="${status}"} ${count}`);
      }
    }
    const name = 'cloudlet_http_request_duration_seconds';
    lines.push(`# HELP ${name} Time from request to the end of the response`, `# TYPE ${name} histogram`);
    for (const { labels, histogram } of this.#requests.values())
      lines.push(...renderHistogram(name, labels, histogram));
    for (const [name, series] of shown) lines.push(...renderSeries(name, series));
    return `${lines.join('\n')}\n`;
  }

  async #asked(answers: readonly Promise<void>[]): Promise<void> {
    const patience = Promise.withResolvers<void>();
    const timer = setTimeout(patience.resolve, PATIENCE_MS);
    await Promise.race([Promise.all(answers), patience.promise]);
    clearTimeout(timer);
  }
}

interface FinishedRequest {
  readonly protocol: Protocol;
  readonly route: string;
  readonly status: number;
}

interface RouteRequests {
  /** Name as displayed. */
  readonly labels: string;
  readonly statuses: Map<number, number>;
  readonly histogram: Histogram;
}

function renderSeries(name: string, { help, type, labels, read }: Series): string[] {
  const samples = read().map((sample) => {
    if (labels.length === 0) return `${name} ${sample.value}`;
    const pairs = labels.map((label, at) => `${label}="${escapeLabel(sample.labels[at] ?? '')}"`);
    return `${name}{${pairs.join(',')}} ${sample.value}`;
  });
  if (samples.length === 0) return [];
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samples];
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

function renderHistogram(name: string, labels: string, histogram: Histogram): string[] {
  const lines: string[] = [];
  let cumulative = 0;
  for (const [slot, bound] of BUCKETS_SECONDS.entries()) {
    cumulative += histogram.counts[slot] as number;
    lines.push(`${name}_bucket{${labels},le="${bound}"} ${cumulative}`);
  }
  lines.push(`${name}_bucket{${labels},le="+Inf"} ${histogram.count}`);
  lines.push(`${name}_sum{${labels}} ${histogram.sum}`, `${name}_count{${labels}} ${histogram.count}`);
  return lines;
}
