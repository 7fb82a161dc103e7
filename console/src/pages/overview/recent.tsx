/** Machines with their load, and databases. */
import { Group, SimpleGrid, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Database, Vm } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { gauge, onSteps, SPANS, spanQuery } from '../../parts/charts/steps.ts';
import { sayBytes } from '../../parts/say.ts';
import { AnchorLink } from '../../parts/tables/links.tsx';
import { DatabaseState, VmState } from '../../parts/tables/state-badge.tsx';
import { overviewText } from '../../texts/pages/overview-text.ts';
import { text } from '../../texts/text.ts';
import { databasesQuery } from '../databases/queries/queries.ts';
import { vmsQuery } from '../machines/queries.ts';
import classes from './overview-page.module.css';

/** Maximum number of machines, and of databases, shown. */
const SHOWN = 5;
const words = overviewText.recent;

export function Recent() {
  const { data: machines = [] } = useQuery(vmsQuery);
  const { data: databases = [] } = useQuery(databasesQuery);
  if (machines.length + databases.length === 0) return null;
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing={40}>
      {machines.length > 0 && (
        <Section title={text.shell.areas.machines} id="recent-machines">
          {runningFirst(machines).map((vm) => (
            <MachineLine key={vm.vm_id} vm={vm} />
          ))}
        </Section>
      )}
      {databases.length > 0 && (
        <Section title={text.shell.areas.databases} id="recent-databases">
          {newest(databases).map((database) => (
            <DatabaseLine key={database.database_id} database={database} />
          ))}
        </Section>
      )}
    </SimpleGrid>
  );
}

/** The newest few; one pass, because there may be ten thousand. */
function newest<T extends { readonly created_at: string }>(all: readonly T[]): readonly T[] {
  const found: T[] = [];
  for (const one of all) {
    if (found.length === SHOWN && one.created_at <= (found.at(-1)?.created_at ?? '')) continue;
    const at = found.findIndex(({ created_at }) => created_at < one.created_at);
    found.splice(at < 0 ? found.length : at, 0, one);
    if (found.length > SHOWN) found.pop();
  }
  return found;
}

const runningFirst = (machines: readonly Vm[]) =>
  [
    ...newest(machines.filter(({ state }) => state === 'running')),
    ...newest(machines.filter(({ state }) => state !== 'running')),
  ].slice(0, SHOWN);

function Section({ title, id, children }: { title: string; id: string; children: ReactNode }) {
  return (
    <section aria-labelledby={id}>
      <Title order={2} id={id} mb="xs">
        {title}
      </Title>
      <ul className={classes.recent}>{children}</ul>
    </section>
  );
}

function MachineLine({ vm }: { vm: Vm }) {
  return (
    <li>
      <AnchorLink to="/machines/$vm" params={{ vm: vm.vm_id }}>
        {vm.name}
      </AnchorLink>
      <Group gap="sm" wrap="nowrap">
        {vm.state === 'running' && <Load vmId={vm.vm_id} />}
        <VmState vm={vm} />
      </Group>
    </li>
  );
}

function DatabaseLine({ database }: { database: Database }) {
  const { database_id: id, name, size_bytes: size } = database;
  return (
    <li>
      <AnchorLink to="/databases/$database" params={{ database: id }}>
        {name}
      </AnchorLink>
      <Group gap="sm" wrap="nowrap">
        <Text size="sm" c="dimmed">
          {sayBytes(size)}
        </Text>
        <DatabaseState database={database} />
      </Group>
    </li>
  );
}

const WIDTH = 96;
const HEIGHT = 24;

/** Processor use of the last hour as a line; the newest reading as text. */
function Load({ vmId }: { vmId: string }) {
  const { data } = useQuery({
    queryKey: ['vms', vmId, 'metrics', 'hour'],
    queryFn: () => cloud.getVmMetrics(vmId, spanQuery('hour')),
    refetchInterval: SPANS.hour.refreshMs,
  });
  const values = gauge(onSteps(data?.history ?? [], 'hour'), ({ cpu_percent }) => cpu_percent);
  const last = values.findLast((value) => value !== null);
  if (last === null || last === undefined) return null;
  const xOf = (index: number) => (index / Math.max(1, values.length - 1)) * WIDTH;
  const yOf = (percent: number) => HEIGHT - 1 - (Math.min(100, percent) / 100) * (HEIGHT - 2);
  // A gap begins a new line.
  const path = values
    .map((value, index) => {
      if (value === null) return '';
      const isFirst = (values[index - 1] ?? null) === null;
      return `${isFirst ? 'M' : 'L'}${xOf(index).toFixed(1)} ${yOf(value).toFixed(1)}`;
    })
    .join('');
  const said = words.processor(Math.round(last));
  return (
    <span className={classes.load} title={said}>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} role="img" aria-label={said}>
        <path d={path} />
        <circle cx={xOf(values.lastIndexOf(last))} cy={yOf(last)} r={2} />
      </svg>
    </span>
  );
}
