/** What is kept of machines' readings. */
import type { Figures, Sample, SamplesStore, SampleTable } from '../../metadata/samples-store.ts';

/** Counters count since the run began. */
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
export type VmSample = Sample<VmFigure>;
export type VmSamplesStore = SamplesStore<VmFigure>;
