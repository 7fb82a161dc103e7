/** What a machine uses: now, and over the last hour and month. */
import type { Principal } from '../accounts/principal.ts';
import { type Clock, formatTime } from '../clock.ts';
import { type MetricsRange, type RangeText, readRange } from './metrics-range.ts';
import type { HistoryEntry, VmMetrics } from './metrics-schema.ts';
import { COARSE_STEP, FINE_STEP, type Figures, type MetricsStore, type SampleRow } from './metrics-store.ts';
import type { SampledVm, Sampler } from './sampler.ts';
import type { VmRow } from './store.ts';

export type MeasuredVm = SampledVm & Pick<VmRow, 'state' | 'memory_mb'>;

export interface MetricsDeps {
  readonly clock: Clock;
  readonly store: MetricsStore;
  readonly sampler: Pick<Sampler, 'read'>;
  /** The principal's machine; throws `vm_not_found`. */
  readonly find: (principal: Principal, vmId: string) => Promise<MeasuredVm>;
}

const MIB = 1_048_576;

type ShownFigures = Omit<HistoryEntry, 'timestamp'>;

const ZEROS: ShownFigures = {
  cpu_percent: 0,
  memory_percent: 0,
  memory_used_mb: 0,
  disk_read_bytes: 0,
  disk_write_bytes: 0,
  network_rx_bytes: 0,
  network_tx_bytes: 0,
};

const UNKNOWN: Figures = {
  cpu_percent: null,
  memory_used_bytes: null,
  memory_total_bytes: null,
  resident_bytes: null,
  disk_read_bytes: null,
  disk_write_bytes: null,
  network_rx_bytes: null,
  network_tx_bytes: null,
};

export class Metrics {
  readonly #deps: MetricsDeps;

  constructor(deps: MetricsDeps) {
    this.#deps = deps;
  }

  /**
   * The figures of now: zeros when the machine does not run, null where they are not known. With any of
   * `from`, `to` and `step` also its history. Throws `vm_not_found` and `invalid_request`.
   */
  async read(principal: Principal, vmId: string, text: RangeText): Promise<VmMetrics> {
    const { clock, sampler, find } = this.#deps;
    const vm = await find(principal, vmId);
    const wantsHistory = text.from !== undefined || text.to !== undefined || text.step !== undefined;
    const range = wantsHistory ? readRange(text, clock.now()) : null;
    const isRunning = vm.state === 'running';
    const reading = isRunning ? await sampler.read(vm) : null;
    const now = clock.now();
    const uptime = vm.started_at === null ? null : Math.max(0, Math.floor((now - vm.started_at) / 1000));
    return {
      vm_id: vm.vm_id,
      state: vm.state,
      timestamp: formatTime(reading?.at ?? now),
      ...(isRunning ? present(reading ?? UNKNOWN, vm.memory_mb) : ZEROS),
      uptime_seconds: isRunning ? uptime : 0,
      ...(range === null ? {} : { history: await this.#history(vm, range) }),
    };
  }

  async #history(vm: MeasuredVm, range: MetricsRange): Promise<HistoryEntry[]> {
    const { store } = this.#deps;
    const cut = Math.min(Math.max(range.from, range.fineFrom), range.to);
    const coarse = await store.range(vm.id, COARSE_STEP, { from: range.from, to: cut });
    const fine = await store.range(vm.id, FINE_STEP, { from: cut, to: range.to });
    const steps = Map.groupBy([...coarse, ...fine], ({ at }) => at - (at % range.stepMs));
    return [...steps].map(([at, rows]) => ({
      timestamp: formatTime(at),
      ...present(combine(rows), vm.memory_mb),
    }));
  }
}

/** Means of shares and memory, the last of counters. `rows` has at least one. */
function combine(rows: readonly SampleRow[]): Figures {
  const last = rows.at(-1) ?? UNKNOWN;
  const mean = (read: (row: SampleRow) => number | null) => {
    const known = rows.map(read).filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
  };
  return {
    ...last,
    cpu_percent: mean((row) => row.cpu_percent),
    memory_used_bytes: mean((row) => row.memory_used_bytes),
    memory_total_bytes: mean((row) => row.memory_total_bytes),
    resident_bytes: mean((row) => row.resident_bytes),
  };
}

/** `memoryMb` is what the machine was given, for engines that do not say what its guest has. */
function present(figures: Figures, memoryMb: number): ShownFigures {
  const used = figures.memory_used_bytes;
  const total = figures.memory_total_bytes ?? memoryMb * MIB;
  return {
    cpu_percent: figures.cpu_percent === null ? null : round(figures.cpu_percent),
    memory_percent: used === null || total <= 0 ? null : Math.min(100, round((used / total) * 100)),
    memory_used_mb: used === null ? null : round(used / MIB),
    disk_read_bytes: figures.disk_read_bytes,
    disk_write_bytes: figures.disk_write_bytes,
    network_rx_bytes: figures.network_rx_bytes,
    network_tx_bytes: figures.network_tx_bytes,
  };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
