/** A machine's current metrics and their history of an hour and a month. */
import type { Principal } from '../../calls/principal.ts';
import { historyOf, type RangeText, readRange } from '../../metadata/sample-history.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import type { Meters } from '../../platform/prometheus.ts';
import type { VmRow } from '../machines/vm-store.ts';
import type { HistoryEntry, VmMetrics } from './metrics-routes.ts';
import type { Reading, SampledVm, Sampler, VmFigures, VmSamplesStore } from './sampler.ts';

export type MeasuredVm = SampledVm & Pick<VmRow, 'state' | 'memory_mb'>;

export interface MetricsDeps {
  readonly clock: Clock;
  readonly store: VmSamplesStore;
  readonly sampler: Pick<Sampler, 'read'>;
  /** Finds the principal's machine; throws `vm_not_found`. */
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

const UNKNOWN: VmFigures = {
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
   * Current metrics: zeros if the machine does not run, null if unknown. With any of `from`, `to`
   * and `step`, includes the history. Throws `vm_not_found` and `invalid_request`.
   */
  async read(principal: Principal, vmId: string, text: RangeText): Promise<VmMetrics> {
    const { clock, store, sampler, find } = this.#deps;
    const vm = await find(principal, vmId);
    const range = readRange(text, clock.now());
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
      ...(await historyOf(store, { owner: vm.id, range }, (figures) => present(figures, vm.memory_mb))),
    };
  }
}

/** `memoryMb`: the machine's configured memory, for engines that do not report the guest's total. */
function present(figures: VmFigures, memoryMb: number): ShownFigures {
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

/** A Prometheus series of running machines. */
interface VmSeries {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge';
  readonly read: (reading: Reading) => number | null;
}

const SERIES: readonly VmSeries[] = [
  {
    name: 'cloudlet_vm_cpu_seconds_total',
    help: 'CPU time of all vCPUs in this run',
    type: 'counter',
    read: ({ cpuMs }) => (cpuMs === null ? null : cpuMs / 1000),
  },
  {
    name: 'cloudlet_vm_memory_resident_bytes',
    help: 'Host memory held by the virtual machine',
    type: 'gauge',
    read: (reading) => reading.resident_bytes,
  },
  {
    name: 'cloudlet_vm_disk_read_bytes_total',
    help: 'Bytes read from the disk in this run',
    type: 'counter',
    read: (reading) => reading.disk_read_bytes,
  },
  {
    name: 'cloudlet_vm_disk_write_bytes_total',
    help: 'Bytes written to the disk in this run',
    type: 'counter',
    read: (reading) => reading.disk_write_bytes,
  },
  {
    name: 'cloudlet_vm_network_receive_bytes_total',
    help: 'Bytes received in this run; if the hypervisor does not count them, bytes through the address',
    type: 'counter',
    read: (reading) => reading.network_rx_bytes,
  },
  {
    name: 'cloudlet_vm_network_transmit_bytes_total',
    help: 'Bytes sent in this run; if the hypervisor does not count them, bytes through the address',
    type: 'counter',
    read: (reading) => reading.network_tx_bytes,
  },
];

interface VmSources {
  readonly sampler: Pick<Sampler, 'all'>;
  readonly counts: () => Promise<readonly { state: string; count: number }[]>;
}

/** Declares the series of machines. Unknown figures have no sample. */
export function meterVms(meters: Meters, { sampler, counts }: VmSources): void {
  meters.askedSeries('cloudlet_vms', {
    help: 'Virtual machines by state',
    type: 'gauge',
    labels: ['state'],
    isPublic: true,
    ask: async () => (await counts()).map(({ state, count }) => ({ labels: [state], value: count })),
  });
  const labels = ['vm_id', 'account'];
  meters.series('cloudlet_vm_up', {
    help: '1 while the virtual machine runs and reports metrics, 0 while it runs and reports none',
    type: 'gauge',
    labels,
    read: () =>
      sampler.all().map(({ vm, reading }) => ({
        labels: [vm.vm_id, String(vm.account_id)],
        value: reading === null ? 0 : 1,
      })),
  });
  for (const { name, help, type, read } of SERIES) {
    const samples = () =>
      sampler.all().flatMap(({ vm, reading }) => {
        const value = reading === null ? null : read(reading);
        return value === null ? [] : [{ labels: [vm.vm_id, String(vm.account_id)], value }];
      });
    meters.series(name, { help, type, labels, read: samples });
  }
}
