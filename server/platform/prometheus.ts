/** Counters, gauges and histograms in Prometheus' text format 0.0.4. */

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60];

interface Histogram {
  /** Not cumulative; one more than BUCKETS_SECONDS, for values beyond the last. */
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

/** One value of a labelled series; `labels` in the order in which the series declares them. */
export interface SeriesSample {
  readonly labels: readonly string[];
  readonly value: number;
}

interface Series {
  readonly help: string;
  readonly type: 'gauge' | 'counter';
  readonly labels: readonly string[];
  readonly read: () => readonly SeriesSample[];
}

export class Meters {
  readonly #requests = new Map<string, Map<number, number>>();
  readonly #durations = new Map<string, Histogram>();
  readonly #gauges = new Map<string, Gauge>();
  readonly #series = new Map<string, Series>();

  /**
   * Counts a finished request of a named operation. `status` 499: the client disconnected before a response.
   */
  observeRequest(route: string, status: number, seconds: number): void {
    let statuses = this.#requests.get(route);
    if (!statuses) {
      statuses = new Map();
      this.#requests.set(route, statuses);
    }
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    let histogram = this.#durations.get(route);
    if (!histogram) {
      histogram = { counts: new Array<number>(BUCKETS_SECONDS.length + 1).fill(0), sum: 0, count: 0 };
      this.#durations.set(route, histogram);
    }
    let slot = 0;
    while (slot < BUCKETS_SECONDS.length && seconds > (BUCKETS_SECONDS[slot] as number)) slot++;
    histogram.counts[slot] = (histogram.counts[slot] as number) + 1;
    histogram.sum += seconds;
    histogram.count++;
  }

  /** Adds a value that is read at each scrape. `name` in Prometheus' form, unit last. */
  gauge(name: string, gauge: Gauge): void {
    this.#gauges.set(name, gauge);
  }

  /**
   * Adds values by label, read at each scrape. Labels may reveal accounts and their resources, so they are
   * shown to an operator only.
   */
  series(name: string, series: Series): void {
    this.#series.set(name, series);
  }

  /** The text. With `details`, labelled series too. */
  render({ details = false } = {}): string {
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
    for (const [route, statuses] of this.#requests) {
      for (const [status, count] of statuses) {
        lines.push(`cloudlet_http_requests_total{route="${route}",status="${status}"} ${count}`);
      }
    }
    const name = 'cloudlet_http_request_duration_seconds';
    lines.push(`# HELP ${name} Time from request to the end of the response`, `# TYPE ${name} histogram`);
    for (const [route, histogram] of this.#durations) lines.push(...renderHistogram(name, route, histogram));
    if (details) for (const [name, series] of this.#series) lines.push(...renderSeries(name, series));
    return `${lines.join('\n')}\n`;
  }
}

function renderSeries(name: string, { help, type, labels, read }: Series): string[] {
  const samples = read().map((sample) => {
    const pairs = labels.map((label, at) => `${label}="${escapeLabel(sample.labels[at] ?? '')}"`);
    return `${name}{${pairs.join(',')}} ${sample.value}`;
  });
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samples];
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

function renderHistogram(name: string, route: string, histogram: Histogram): string[] {
  const lines: string[] = [];
  let cumulative = 0;
  for (const [slot, bound] of BUCKETS_SECONDS.entries()) {
    cumulative += histogram.counts[slot] as number;
    lines.push(`${name}_bucket{route="${route}",le="${bound}"} ${cumulative}`);
  }
  lines.push(`${name}_bucket{route="${route}",le="+Inf"} ${histogram.count}`);
  lines.push(
    `${name}_sum{route="${route}"} ${histogram.sum}`,
    `${name}_count{route="${route}"} ${histogram.count}`,
  );
  return lines;
}
