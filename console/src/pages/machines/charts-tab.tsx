/** Charts of a machine: processor, memory, disk, network. */

import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback } from 'react';
import type { Vm, VmMetricsEntry } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { type Figure, HistoryCharts } from '../../parts/charts/history-charts.tsx';
import { gauge, rate, readingsFor, type Series, SPANS, spanQuery } from '../../parts/charts/steps.ts';
import { sayBytes } from '../../parts/say.ts';
import { machineText } from '../../texts/machine-text.ts';

const words = machineText.charts;
const MIB = 2 ** 20;
const sayPercent = (value: number) => `${Math.round(value)} %`;
const sayRate = (value: number) => `${sayBytes(value)}/s`;

export function ChartsTab({ vm }: { vm: Vm }) {
  const { span = 'hour' } = useSearch({ from: '/shell/machines/$vm' });
  const navigate = useNavigate({ from: '/machines/$vm' });
  const readings = readingsFor(span, vm.created_at);
  const metrics = useQuery({
    queryKey: ['vms', vm.vm_id, 'metrics', readings],
    queryFn: () => cloud.getVmMetrics(vm.vm_id, spanQuery(readings)),
    refetchInterval: vm.state === 'running' ? SPANS[readings].refreshMs : false,
  });
  const memoryBytes = vm.memory_mb * MIB;
  return (
    <HistoryCharts
      query={metrics}
      span={span}
      readings={readings}
      onSpan={(next) => navigate({ search: (before) => ({ ...before, span: next }), replace: true })}
      words={words}
      figuresOf={useCallback(
        (series: Series<VmMetricsEntry>) => figuresOf(series, memoryBytes),
        [memoryBytes],
      )}
    />
  );
}

const usedBytes = ({ memory_used_mb: used }: VmMetricsEntry) => (used === null ? null : used * MIB);

function figuresOf(series: Series<VmMetricsEntry>, memoryBytes: number): readonly Figure[] {
  const cpu = gauge(series, (entry) => entry.cpu_percent);
  const disk = [
    { label: words.read, values: rate(series, (entry) => entry.disk_read_bytes) },
    { label: words.written, values: rate(series, (entry) => entry.disk_write_bytes) },
  ];
  const network = [
    { label: words.received, values: rate(series, (entry) => entry.network_rx_bytes) },
    { label: words.sent, values: rate(series, (entry) => entry.network_tx_bytes) },
  ];
  const memory = gauge(series, usedBytes);
  return [
    { title: words.cpu, lines: [{ label: words.used, values: cpu }], say: sayPercent, max: 100 },
    {
      title: words.memory,
      lines: [{ label: words.used, values: memory }],
      say: sayBytes,
      max: memoryBytes,
      isBinary: true,
    },
    { title: words.disk, lines: disk, say: sayRate, isBinary: true },
    { title: words.network, lines: network, say: sayRate, isBinary: true },
  ];
}
