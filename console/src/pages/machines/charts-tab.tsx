/** What a machine used over time. */
import { Group, SegmentedControl, SimpleGrid, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { Vm, VmMetricsEntry } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { Chart } from '../../parts/chart.tsx';
import { gauge, onSteps, rate, type Series, SPANS, type Span, spanQuery } from '../../parts/history.ts';
import { Loaded } from '../../parts/page.tsx';
import { sayBytes } from '../../parts/size.ts';
import { text } from '../../texts/text.ts';

const words = text.machines.charts;
const MIB = 2 ** 20;
const sayPercent = (value: number) => `${Math.round(value)} %`;
const sayRate = (value: number) => `${sayBytes(value)}/s`;

export function ChartsTab({ vm }: { vm: Vm }) {
  const { span = 'hour' } = useSearch({ from: '/shell/machines/$vm' });
  const navigate = useNavigate({ from: '/machines/$vm' });
  const metrics = useQuery({
    queryKey: ['vms', vm.vm_id, 'metrics', span],
    queryFn: () => cloud.vms.metrics(vm.vm_id, spanQuery(span)),
    refetchInterval: vm.state === 'running' ? SPANS[span].refreshMs : false,
  });
  return (
    <Stack>
      <Group justify="space-between">
        <Text c="dimmed">{words.gaps}</Text>
        <SegmentedControl
          aria-label={words.span}
          value={span}
          data={Object.entries(words.spans).map(([value, label]) => ({ value, label }))}
          onChange={(next) =>
            navigate({ search: (before) => ({ ...before, span: next as Span }), replace: true })
          }
        />
      </Group>
      <Loaded query={metrics}>
        {({ history = [] }) =>
          history.length === 0 ? <Text>{words.none}</Text> : <Charts history={history} span={span} vm={vm} />
        }
      </Loaded>
    </Stack>
  );
}

interface ChartsProps {
  readonly history: readonly VmMetricsEntry[];
  readonly span: Span;
  readonly vm: Vm;
}

function Charts({ history, span, vm }: ChartsProps) {
  const { series, lines } = useMemo(() => {
    const onGrid = onSteps(history, span);
    return { series: onGrid, lines: linesOf(onGrid) };
  }, [history, span]);
  const { times } = series;
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
      <Chart
        title={words.cpu}
        label={words.tableOf(words.cpu)}
        times={times}
        lines={lines.cpu}
        say={sayPercent}
        max={100}
      />
      <Chart
        title={words.memory}
        label={words.tableOf(words.memory)}
        times={times}
        lines={lines.memory}
        say={sayBytes}
        max={vm.memory_mb * MIB}
        isBinary
      />
      <Chart
        title={words.disk}
        label={words.tableOf(words.disk)}
        times={times}
        lines={lines.disk}
        say={sayRate}
        isBinary
      />
      <Chart
        title={words.network}
        label={words.tableOf(words.network)}
        times={times}
        lines={lines.network}
        say={sayRate}
        isBinary
      />
    </SimpleGrid>
  );
}

const usedBytes = ({ memory_used_mb: used }: VmMetricsEntry) => (used === null ? null : used * MIB);

function linesOf(series: Series<VmMetricsEntry>) {
  return {
    cpu: [{ label: words.used, values: gauge(series, (entry) => entry.cpu_percent) }],
    memory: [{ label: words.used, values: gauge(series, usedBytes) }],
    disk: [
      { label: words.read, values: rate(series, (entry) => entry.disk_read_bytes) },
      { label: words.written, values: rate(series, (entry) => entry.disk_write_bytes) },
    ],
    network: [
      { label: words.received, values: rate(series, (entry) => entry.network_rx_bytes) },
      { label: words.sent, values: rate(series, (entry) => entry.network_tx_bytes) },
    ],
  };
}
