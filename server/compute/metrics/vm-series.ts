/** What Prometheus is told of running machines. */
import type { Meters } from '../../platform/prometheus.ts';
import type { Reading, Sampler } from './sampler.ts';

interface VmSeries {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge';
  readonly read: (reading: Reading) => number | null;
}

const SERIES: readonly VmSeries[] = [
  {
    name: 'cloudlet_vm_cpu_seconds_total',
    help: 'Processor time of all vCPUs in this run',
    type: 'counter',
    read: ({ cpuMs }) => (cpuMs === null ? null : cpuMs / 1000),
  },
  {
    name: 'cloudlet_vm_memory_resident_bytes',
    help: 'Memory of the host that the machine holds',
    type: 'gauge',
    read: (reading) => reading.resident_bytes,
  },
  {
    name: 'cloudlet_vm_disk_read_bytes_total',
    help: 'Read from its disk in this run',
    type: 'counter',
    read: (reading) => reading.disk_read_bytes,
  },
  {
    name: 'cloudlet_vm_disk_write_bytes_total',
    help: 'Written to its disk in this run',
    type: 'counter',
    read: (reading) => reading.disk_write_bytes,
  },
  {
    name: 'cloudlet_vm_network_receive_bytes_total',
    help: 'To the machine in this run; without a count of the engine, the bytes through its address',
    type: 'counter',
    read: (reading) => reading.network_rx_bytes,
  },
  {
    name: 'cloudlet_vm_network_transmit_bytes_total',
    help: 'From the machine in this run; without a count of the engine, the bytes through its address',
    type: 'counter',
    read: (reading) => reading.network_tx_bytes,
  },
];

/** Declares the series of machines. A figure that is not known has no sample. */
export function meterVms(meters: Meters, sampler: Pick<Sampler, 'all'>): void {
  const labels = ['vm_id', 'account'];
  meters.series('cloudlet_vm_up', {
    help: '1 while the machine runs and gives figures, 0 while it runs and gives none',
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
