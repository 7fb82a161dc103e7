/** Samples every running machine every few seconds; keeps the latest sample in memory and stores all. */
import type { Awaitable, Metadata } from '../../metadata/metadata.ts';
import {
  FINE_STEP,
  type Figures,
  type Sample,
  type SamplesStore,
  type SampleTable,
} from '../../metadata/samples-store.ts';
import type { Clock } from '../../platform/clock.ts';
import { Readings } from '../../resources/readings.ts';
import type { GuestSample, Hypervisor } from '../hypervisor.ts';
import type { Ingress } from '../ingress.ts';
import type { VmRow } from '../machines/vm-store.ts';

export type SampledVm = Pick<VmRow, 'id' | 'vm_id' | 'account_id' | 'vcpus' | 'started_at'>;

interface SamplerDeps {
  readonly clock: Clock;
  readonly hypervisor: Pick<Hypervisor, 'sample'>;
  readonly ingress: Pick<Ingress, 'traffic'>;
  readonly metadata: Metadata;
  readonly samples: VmSamplesStore;
  /** Machines in state `running`. */
  readonly running: () => Awaitable<readonly SampledVm[]>;
  /** Timeout of a single sample, ms. */
  readonly timeoutMs?: number;
}

/** The latest sample of a machine. */
export interface Reading extends VmSample {
  readonly vm: SampledVm;
  /** Processor time since the run began. */
  readonly cpuMs: number | null;
  /** Monotonic time of the reading, ms. */
  readonly takenAt: number;
}

interface Offsets {
  /** Start time of the run they belong to. */
  readonly startedAt: number | null;
  readonly rx: number;
  readonly tx: number;
}

/** Older samples are not current. */
const FRESH_MS = 3 * FINE_STEP * 1000;
/**
 * The first CPU share covers the time since the start for a younger run; for an older run it would not be
 * current.
 */
const YOUNG_RUN_MS = 60_000;
/** The kernel counts in ticks of 10 ms: a share of a shorter span is imprecise. */
const LEAST_SPAN_MS = 100;
/** A sample without a CPU share is repeated after this. */
const RESAMPLE_MS = 1000;

export class Sampler {
  readonly #deps: SamplerDeps;
  readonly #latest = new Map<string, Reading>();
  readonly #offsets = new Map<string, Offsets>();
  #running: readonly SampledVm[] = [];
  readonly #readings: Readings<VmFigure>;

  constructor(deps: SamplerDeps) {
    this.#deps = deps;
    this.#readings = new Readings(deps);
  }

  /** Samples all running machines and stores the samples in one commit. To be called every 5 s. */
  async tick(): Promise<void> {
    const vms = await this.#deps.running();
    this.#running = vms;
    this.#forget(new Set(vms.map((vm) => vm.vm_id)));
    const at = this.#deps.clock.now();
    await this.#readings.round(vms, at, async (vm) => {
      const reading = await this.#read(vm, at);
      return reading === null ? [] : [this.#deps.samples.insert(vm.id, reading)];
    });
  }

  /** The latest sample if it belongs to this run and is at most 15 s old; otherwise samples now. */
  async read(vm: SampledVm): Promise<Reading | null> {
    const known = this.#latest.get(vm.vm_id);
    if (known !== undefined && this.#isFresh(known) && known.vm.started_at === vm.started_at) {
      const age = this.#deps.clock.monotonic() - known.takenAt;
      if (known.cpu_percent !== null || age < RESAMPLE_MS) return known;
    }
    return this.#read(vm, this.#deps.clock.now());
  }

  /** Every machine that ran at the last tick; null without a current sample. */
  all(): readonly { readonly vm: SampledVm; readonly reading: Reading | null }[] {
    return this.#running.map((vm) => {
      const known = this.#latest.get(vm.vm_id);
      return { vm, reading: known !== undefined && this.#isFresh(known) ? known : null };
    });
  }

  #isFresh(reading: Reading): boolean {
    return this.#deps.clock.monotonic() - reading.takenAt < FRESH_MS;
  }

  #forget(running: ReadonlySet<string>): void {
    for (const vmId of this.#offsets.keys()) {
      if (running.has(vmId)) continue;
      this.#latest.delete(vmId);
      this.#offsets.delete(vmId);
    }
  }

  async #read(vm: SampledVm, at: number): Promise<Reading | null> {
    const sample = await this.#readings.take(vm.vm_id, () => this.#deps.hypervisor.sample(vm.vm_id));
    if (sample === null) return null;
    const takenAt = this.#deps.clock.monotonic();
    const before = this.#latest.get(vm.vm_id);
    const sameRun = before?.vm.started_at === vm.started_at ? before : undefined;
    const figures: VmFigures = {
      cpu_percent: cpuPercent(sample, cpuSpan(vm, { at, takenAt, before: sameRun })),
      memory_used_bytes: sample.memoryUsedBytes,
      memory_total_bytes: sample.memoryTotalBytes,
      resident_bytes: sample.residentBytes,
      disk_read_bytes: sample.diskReadBytes,
      disk_write_bytes: sample.diskWriteBytes,
      ...(await this.#network(vm, sample)),
    };
    const reading = { vm, at, takenAt, cpuMs: sample.cpuMs, ...figures };
    this.#latest.set(vm.vm_id, reading);
    return reading;
  }

  /** The engine's counters, or else the bytes through the machine's address in this run. */
  async #network(vm: SampledVm, sample: GuestSample) {
    const offsets = await this.#offsetsOf(vm);
    const traffic = this.#deps.ingress.traffic(vm.vm_id);
    const rx = traffic === null ? null : traffic.inBytes + offsets.rx;
    const tx = traffic === null ? null : traffic.outBytes + offsets.tx;
    return {
      network_rx_bytes: sample.networkRxBytes ?? rx,
      network_tx_bytes: sample.networkTxBytes ?? tx,
    };
  }

  /**
   * Offsets to add to the address's counters, which restart with each run and with Cloudlet: the totals
   * stored before this process first sampled the run.
   */
  async #offsetsOf(vm: SampledVm): Promise<Offsets> {
    const known = this.#offsets.get(vm.vm_id);
    if (known !== undefined && known.startedAt === vm.started_at) return known;
    const stored = vm.started_at === null ? null : await this.#deps.samples.newest(vm.id, vm.started_at);
    const offsets = {
      startedAt: vm.started_at,
      rx: stored?.network_rx_bytes ?? 0,
      tx: stored?.network_tx_bytes ?? 0,
    };
    this.#offsets.set(vm.vm_id, offsets);
    return offsets;
  }
}

interface CpuSpan {
  readonly ms: number;
  /** CPU time at the beginning of the span. */
  readonly fromMs: number;
  readonly vcpus: number;
}

/** The span since the last sample; for the first sample, since the start of a young run. */
function cpuSpan(
  { started_at, vcpus }: SampledVm,
  { at, takenAt, before }: { at: number; takenAt: number; before: Reading | undefined },
): CpuSpan | null {
  if (before !== undefined) {
    return before.cpuMs === null ? null : { ms: takenAt - before.takenAt, fromMs: before.cpuMs, vcpus };
  }
  const ms = started_at === null ? Number.POSITIVE_INFINITY : at - started_at;
  return ms > YOUNG_RUN_MS ? null : { ms, fromMs: 0, vcpus };
}

/** Utilization of all vCPUs, 0–100, one decimal; null: unknown. */
function cpuPercent({ cpuMs }: GuestSample, span: CpuSpan | null): number | null {
  if (cpuMs === null || span === null) return null;
  // A counter that fell belongs to another run.
  if (span.ms < LEAST_SPAN_MS || cpuMs < span.fromMs) return null;
  const percent = ((cpuMs - span.fromMs) / (span.ms * span.vcpus)) * 100;
  return Math.min(100, Math.round(percent * 10) / 10);
}

/** Counters are cumulative since the run began. */
export const VM_SAMPLES = {
  name: 'vm_samples',
  owner: 'vm',
  owners: 'vms',
  figures: {
    cpu_percent: 'mean',
    memory_used_bytes: 'whole mean',
    memory_total_bytes: 'whole mean',
    resident_bytes: 'whole mean',
    disk_read_bytes: 'newest',
    disk_write_bytes: 'newest',
    network_rx_bytes: 'newest',
    network_tx_bytes: 'newest',
  },
} as const satisfies SampleTable<string>;

type VmFigure = keyof typeof VM_SAMPLES.figures;
export type VmFigures = Figures<VmFigure>;
type VmSample = Sample<VmFigure>;
export type VmSamplesStore = SamplesStore<VmFigure>;
