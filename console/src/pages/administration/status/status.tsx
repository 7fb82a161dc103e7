/** Each part of the cloud with its state, and the fix for problems. */

import { Anchor, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { SystemStatus } from '../../../../../sdk/index.ts';
import { Prose } from '../../../parts/commands/code.tsx';
import { Dialog } from '../../../parts/forms/dialog.tsx';
import { Warning } from '../../../parts/forms/warning.tsx';
import { lazyPart } from '../../../parts/lazy-part.tsx';
import { Loaded } from '../../../parts/page.tsx';
import { type Column, DataTable } from '../../../parts/tables/data-table.tsx';
import { StateBadge } from '../../../parts/tables/state-badge.tsx';
import { When } from '../../../parts/tables/when.tsx';
import { text } from '../../../texts/text.ts';
import { EngineTitle } from '../../databases/engine-title.tsx';
import { adminStatusQuery } from '../queries.ts';

const ReleaseNotes = lazyPart(() => import('./release-notes.tsx').then((made) => made.ReleaseNotes));

export function Status() {
  const status = useQuery(adminStatusQuery);
  return (
    <Loaded query={status}>
      {(now) => (
        <Stack gap="xl">
          <Release version={now.version} />
          <Alarms alarms={now.alarms} />
          <Components components={now.components} />
          <Engines engines={now.components.databases.engines} />
        </Stack>
      )}
    </Loaded>
  );
}

function Release({ version }: { version: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Group gap="md">
      <Text>Cloudlet {version}</Text>
      <Anchor component="button" type="button" onClick={() => setOpen(true)}>
        {administration.whatIsNew}
      </Anchor>
      <Dialog size="xl" opened={isOpen} onClose={() => setOpen(false)} title={administration.whatIsNew}>
        {isOpen && <ReleaseNotes />}
      </Dialog>
    </Group>
  );
}

function Alarms({ alarms }: { alarms: SystemStatus['alarms'] }) {
  if (alarms.length === 0) return <Text c="dimmed">{text.administration.noAlarms}</Text>;
  return (
    <Warning title={text.administration.alarms}>
      <Stack gap="xs">
        {alarms.map(({ code, detail, fix, since, node }) => (
          <div key={`${node} ${code}`}>
            {node !== null && <strong>{node}: </strong>}
            {detail} (<When at={since} />)
            <br />
            {text.administration.fix}: <Prose>{fix}</Prose>
          </div>
        ))}
      </Stack>
    </Warning>
  );
}

interface Component {
  readonly name: keyof SystemStatus['components'];
  readonly status: string;
  readonly problem: string | null;
  readonly fix: string | null;
  /** The hypervisor. */
  readonly note: string | null;
}

const { administration } = text;
const COMPONENTS: readonly Column<Component>[] = [
  { name: administration.component, cell: ({ name }) => administration.components[name] },
  {
    name: administration.state,
    cell: ({ status }) => (
      <State isOk={status === 'ok'} says={status === 'ok' ? administration.works : status} />
    ),
  },
  { name: administration.details, cell: (component) => <Details {...component} /> },
];

function Details({ problem, fix, note }: Component) {
  return (
    <>
      {problem !== null && (
        <Text size="sm">
          <Prose>{problem}</Prose>
        </Text>
      )}
      <Fix fix={fix} />
      {note !== null && (
        <Text size="sm" c="dimmed">
          {note}
        </Text>
      )}
    </>
  );
}

function Fix({ fix }: { fix: string | null }) {
  if (fix === null) return null;
  return (
    <Text size="sm">
      {administration.fix}: <Prose>{fix}</Prose>
    </Text>
  );
}

function Components({ components }: { components: SystemStatus['components'] }) {
  const { engine, version, accel, accel_reason: reason } = components.compute;
  const all = Object.entries(components) as [Component['name'], Omit<Component, 'name' | 'note'>][];
  const rows = all.map(([name, { status, problem, fix }]) => {
    const note = name === 'compute' ? `${engine} ${version}, ${accel}: ${reason}` : null;
    return { name, status, problem, fix, note };
  });
  return <DataTable columns={COMPONENTS} rows={rows} keyOf={({ name }) => name} />;
}

function State({ isOk, says }: { isOk: boolean; says: string }) {
  return <StateBadge tone={isOk ? 'good' : 'bad'} word={says} />;
}

type Engine = SystemStatus['components']['databases']['engines'][number];

const ENGINES: readonly Column<Engine>[] = [
  {
    name: administration.engine,
    cell: ({ engine, version }) => (
      <>
        <EngineTitle engine={engine} /> {version}
      </>
    ),
  },
  {
    name: administration.state,
    cell: ({ available }) => (
      <State isOk={available} says={available ? administration.available : administration.unavailable} />
    ),
  },
  {
    name: administration.details,
    cell: ({ source, reason, fix }) => (
      <>
        <Text size="sm" c="dimmed">
          {reason === null ? source : `${source}: ${reason}`}
        </Text>
        <Fix fix={fix} />
      </>
    ),
  },
];

function Engines({ engines }: { engines: readonly Engine[] }) {
  return (
    <section>
      <Title order={2} mb="xs">
        {administration.engines}
      </Title>
      <DataTable columns={ENGINES} rows={engines} keyOf={({ engine }) => engine} />
    </section>
  );
}
