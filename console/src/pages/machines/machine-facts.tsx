/** Addresses, open ports and properties of a machine. */

import { Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Vm } from '../../../../sdk/index.ts';
import { CodeLine } from '../../parts/commands/code.tsx';
import { CopyIcon } from '../../parts/commands/copy.tsx';
import { lazyPart } from '../../parts/lazy-part.tsx';
import { sayWhole, shellWord } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { type Fact, Facts } from '../../parts/tables/facts.tsx';
import { StateBadge } from '../../parts/tables/state-badge.tsx';
import { When } from '../../parts/tables/when.tsx';
import { useIsAdmin } from '../../queries.ts';
import { text } from '../../texts/text.ts';
import { imagesQuery } from './queries.ts';
import { Tags } from './tags.tsx';

const PublishedPorts = lazyPart(() => import('./published-ports.tsx').then((made) => made.PublishedPorts));

const words = text.machines;
const GIB_MB = 1024;
const SSH = 22;

export function MachineFacts({ vm }: { vm: Vm }) {
  return (
    <Stack gap="xl">
      <section>
        <Title order={2} mb="xs">
          {words.ssh}
        </Title>
        <Ssh vm={vm} />
      </section>
      <Facts facts={useFacts(vm)} />
      <section>
        <Title order={2} mb="xs">
          {words.ports}
        </Title>
        <Ports vm={vm} />
      </section>
      <section>
        <Title order={2} mb="xs">
          {words.published.title}
        </Title>
        <PublishedPorts vm={vm} />
      </section>
    </Stack>
  );
}

const isUp = ({ state }: Vm) => state === 'running' || state === 'starting';

function Ssh({ vm }: { vm: Vm }) {
  const isAdmin = useIsAdmin();
  if (vm.ssh_command === null) {
    const reason = vm.ports.find(({ guest_port }) => guest_port === SSH)?.reason;
    if (!isUp(vm)) return <Text c="dimmed">{words.sshNotRunning}</Text>;
    return <Text c="dimmed">{isAdmin ? `${words.sshClosed} ${reason ?? ''}` : words.sshClosed}</Text>;
  }
  return (
    <Stack gap="xs">
      <Text size="sm" c="dimmed">
        {words.sshLead}
      </Text>
      <CodeLine value={vm.ssh_command} label={words.copySsh} />
      <Text size="sm" c="dimmed">
        {words.clientLead}
      </Text>
      <CodeLine value={`cloudlet vm ssh ${shellWord(vm.name)}`} label={words.copyClient} />
    </Stack>
  );
}

function useFacts(vm: Vm): readonly Fact[] {
  const images = useQuery(imagesQuery);
  const image = images.data?.find(({ image_id }) => image_id === vm.image)?.name ?? vm.image;
  const specs = words.specs(vm.vcpus, sayWhole(vm.memory_mb), sayWhole(vm.disk_gb * GIB_MB));
  return [
    { name: words.size, value: `${vm.instance_type}: ${specs}` },
    { name: words.image, value: image },
    {
      name: words.address,
      value: (
        <Group gap={4}>
          <span className="mono">{vm.ip_address}</span>
          {vm.ip_address !== null && <CopyIcon value={vm.ip_address} label={words.copyAddress(vm.name)} />}
        </Group>
      ),
    },
    {
      name: words.internalName,
      value: (
        <>
          <Group gap={4}>
            <span className="mono">{vm.internal_name}</span>
            <CopyIcon value={vm.internal_name} label={words.copyAddress(vm.internal_name)} />
          </Group>
          <Text size="xs" c="dimmed">
            {words.internalLead}
          </Text>
        </>
      ),
    },
    {
      name: words.uptime,
      value: vm.started_at === null ? words.notRunning : <When at={vm.started_at} />,
    },
    { name: words.ready, value: vm.ready_at === null ? words.notReady : <When at={vm.ready_at} /> },
    { name: words.processor, value: <Processor vm={vm} /> },
    { name: words.outbound, value: vm.outbound ? words.outboundYes : words.outboundNo },
    { name: words.region, value: vm.region },
    { name: words.created, value: <When at={vm.created_at} /> },
    {
      name: words.id,
      value: (
        <Group gap={4}>
          <span className="mono">{vm.vm_id}</span>
          <CopyIcon value={vm.vm_id} label={words.copyId} />
        </Group>
      ),
    },
    ...(vm.tags === '' ? [] : [{ name: words.tags, value: <Tags tags={vm.tags} /> }]),
  ];
}

function Processor({ vm: { accel, accel_reason } }: { vm: Vm }) {
  const isAdmin = useIsAdmin();
  if (accel === null) return words.notRunning;
  const names: Readonly<Record<string, string>> = words.processors;
  return (
    <>
      {names[accel] ?? accel}
      {accel_reason !== null && (
        <Text size="xs" c="dimmed">
          {isAdmin ? accel_reason : words.slower}
        </Text>
      )}
    </>
  );
}

function Ports({ vm }: { vm: Vm }) {
  const isAdmin = useIsAdmin();
  const columns: readonly Column<Vm['ports'][number]>[] = [
    { name: words.port, isMono: true, cell: ({ port }) => port },
    { name: words.leadsTo, isMono: true, cell: ({ guest_port: port }) => port },
    {
      name: words.state,
      cell: ({ open, reason }) => (
        <div>
          <StateBadge tone={open ? 'good' : 'quiet'} word={open ? words.open : words.closed} />{' '}
          {!open && (
            <Text span size="sm" c="dimmed">
              {isAdmin || !isUp(vm) ? reason : words.portUnreachable}
            </Text>
          )}
        </div>
      ),
    },
  ];
  return <DataTable columns={columns} rows={vm.ports} keyOf={({ port }) => port} />;
}
