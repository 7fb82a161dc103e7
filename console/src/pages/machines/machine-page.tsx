/** One machine: its state and actions, and tabs with its facts, console, log and charts. */

import { PlayIcon, StopIcon } from '@heroicons/react/24/outline';
import { Button, Group, Tabs } from '@mantine/core';
import { useMutationState, useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { CloudError, type Vm } from '../../../../sdk/index.ts';
import { MoreCredits } from '../../parts/credit-warning.tsx';
import { Refused, Warning } from '../../parts/forms/warning.tsx';
import { lazyPart } from '../../parts/lazy-part.tsx';
import { LogView } from '../../parts/log-view.tsx';
import { Loaded, Page } from '../../parts/page.tsx';
import classes from '../../parts/parts.module.css';
import { sayCredits } from '../../parts/say.ts';
import { AnchorLink } from '../../parts/tables/links.tsx';
import { VmState } from '../../parts/tables/state-badge.tsx';
import { useIsAdmin } from '../../queries.ts';
import { text } from '../../texts/text.ts';
import { BootLine } from './boot-line.tsx';
import { MachineFacts } from './machine-facts.tsx';
import { MachineMenu } from './machine-menu.tsx';
import { isOff, startKey, usePower } from './power.ts';
import { isBooting, MACHINE_TABS, type MachineTab, vmLogQuery, vmQuery, WITH_CONSOLE } from './queries.ts';

const words = text.machines;
const WAITING = <Group h={320} aria-busy="true" />;
const ConsoleTab = lazyPart(() => import('./console-tab.tsx').then((made) => made.ConsoleTab), WAITING);
const ChartsTab = lazyPart(() => import('./charts-tab.tsx').then((made) => made.ChartsTab), WAITING);
const RecoveryTab = lazyPart(() => import('./recovery-tab.tsx').then((made) => made.RecoveryTab));

export function MachinePage() {
  const { vm: id } = useParams({ from: '/shell/machines/$vm' });
  const machine = useQuery(vmQuery(id));
  return (
    <Page
      title={machine.data?.name ?? id}
      trail={<AnchorLink to="/machines">{words.title}</AnchorLink>}
      lead={machine.data === undefined ? undefined : <Lead vm={machine.data} />}
      actions={machine.data === undefined ? undefined : <Actions vm={machine.data} />}
    >
      <Loaded query={machine}>{(vm) => <Inside vm={vm} />}</Loaded>
    </Page>
  );
}

function Lead({ vm }: { vm: Vm }) {
  return (
    <>
      <PriceLine vm={vm} />
      {isBooting(vm) && <BootLine vm={vm} />}
    </>
  );
}

function PriceLine({ vm }: { vm: Vm }) {
  if (vm.total_price_per_hour === 0) return text.billing.free;
  const line = words.priceLine(sayCredits(vm.total_price_per_hour), sayCredits(vm.total_price_per_month));
  if (vm.disk_price_per_hour === 0) return line;
  return `${line} (${words.diskPrice(sayCredits(vm.disk_price_per_hour))})`;
}

function Actions({ vm }: { vm: Vm }) {
  const navigate = useNavigate();
  const power = usePower(vm, true);
  return (
    <>
      <VmState vm={vm} />
      {isOff(vm) && (
        <Button
          leftSection={<PlayIcon width={18} />}
          loading={power.start.isPending}
          onClick={() => power.start.mutate()}
        >
          {words.start}
        </Button>
      )}
      {vm.state === 'running' && (
        <Button
          variant="default"
          leftSection={<StopIcon width={18} />}
          loading={power.stop.isPending}
          onClick={() => power.stop.mutate({ force: false })}
        >
          {words.stop}
        </Button>
      )}
      <MachineMenu vm={vm} onDeleted={() => navigate({ to: '/machines' })} />
    </>
  );
}

function Inside({ vm }: { vm: Vm }) {
  const { tab = 'overview' } = useSearch({ from: '/shell/machines/$vm' });
  const navigate = useNavigate({ from: '/machines/$vm' });
  const open = (next: string | null) =>
    navigate({ search: (before) => ({ ...before, tab: next as MachineTab }), replace: true });
  return (
    <>
      {vm.state_reason !== null && (
        <Warning isError={vm.state === 'error'}>{vm.state_reason.message}</Warning>
      )}
      <RefusedStart vm={vm} />
      <Tabs value={tab} onChange={open} keepMounted={false}>
        <Tabs.List className={classes.tabList ?? ''}>
          {MACHINE_TABS.map((one) => (
            <Tabs.Tab key={one} value={one}>
              {words.tabs[one]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="overview">
          <MachineFacts vm={vm} />
        </Tabs.Panel>
        <Tabs.Panel value="console">
          <ConsoleTab vm={vm} />
        </Tabs.Panel>
        <Tabs.Panel value="log">
          <LogTab vm={vm} />
        </Tabs.Panel>
        <Tabs.Panel value="charts">
          <ChartsTab vm={vm} />
        </Tabs.Panel>
        <Tabs.Panel value="recovery">
          <RecoveryTab vm={vm} />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}

/** Refusals that may not apply to a smaller machine. */
const SIZE_MATTERS = ['insufficient_credits', 'insufficient_capacity', 'quota_exceeded'];

function RefusedStart({ vm }: { vm: Vm }) {
  const errors = useMutationState({
    filters: { mutationKey: startKey(vm.vm_id), exact: true },
    select: ({ state }) => state.error,
  });
  if (!isOff(vm)) return null;
  const error = errors.at(-1);
  return (
    <Refused error={error}>
      <WayOut code={error instanceof CloudError ? error.code : undefined} />
    </Refused>
  );
}

function WayOut({ code }: { code: string | undefined }) {
  const isAdmin = useIsAdmin();
  if (code === 'insufficient_credits' && isAdmin) return <MoreCredits />;
  if (code === undefined || !SIZE_MATTERS.includes(code)) return null;
  return <AnchorLink to="/machines/new">{text.machines.createSmaller}</AnchorLink>;
}

/** Bytes of the log that are read at first, and on request. */
const SHORT_BYTES = 64 * 1024;
const WHOLE_BYTES = 2 ** 20;

function LogTab({ vm }: { vm: Vm }) {
  const [bytes, setBytes] = useState(SHORT_BYTES);
  const log = useQuery(vmLogQuery(vm.vm_id, bytes));
  return (
    <LogView
      query={log}
      lead={text.machines.log.lead}
      empty={text.machines.log.empty}
      fileName={`${vm.name}.log`}
      isLive={WITH_CONSOLE.includes(vm.state)}
    >
      {bytes === SHORT_BYTES && (log.data?.length ?? 0) >= SHORT_BYTES / 2 && (
        <Button variant="default" onClick={() => setBytes(WHOLE_BYTES)}>
          {text.machines.log.whole}
        </Button>
      )}
    </LogView>
  );
}
