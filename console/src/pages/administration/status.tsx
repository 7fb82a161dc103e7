/** Each part of the cloud, how it is, and what to do about it. */

import { Stack, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { SystemStatus } from '../../../../sdk/index.ts';
import { Prose } from '../../parts/code.tsx';
import { ListTable } from '../../parts/list-table.tsx';
import { Loaded } from '../../parts/page.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Warning } from '../../parts/warning.tsx';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { adminStatusQuery } from './queries.ts';

export function Status() {
  const status = useQuery(adminStatusQuery);
  return (
    <Loaded query={status}>
      {(now) => (
        <Stack gap="xl">
          <Alarms alarms={now.alarms} />
          <Components components={now.components} />
          <Engines engines={now.components.databases.engines} />
        </Stack>
      )}
    </Loaded>
  );
}

function Alarms({ alarms }: { alarms: SystemStatus['alarms'] }) {
  if (alarms.length === 0) return <Text c="dimmed">{text.administration.noAlarms}</Text>;
  return (
    <Warning title={text.administration.alarms}>
      <Stack gap="xs">
        {alarms.map(({ code, detail, fix, since }) => (
          <div key={code}>
            {detail} (<When at={since} />)
            <br />
            {text.administration.fix}: <Prose>{fix}</Prose>
          </div>
        ))}
      </Stack>
    </Warning>
  );
}

function Components({ components }: { components: SystemStatus['components'] }) {
  const { compute } = components;
  const all = Object.entries(components) as [
    keyof typeof components,
    { status: string; problem: string | null; fix: string | null },
  ][];
  return (
    <ListTable
      heads={[
        { name: text.administration.component },
        { name: text.administration.state },
        { name: text.administration.details },
      ]}
    >
      {all.map(([name, { status, problem, fix }]) => (
        <Table.Tr key={name}>
          <Table.Td>{text.administration.components[name]}</Table.Td>
          <Table.Td>
            <State isOk={status === 'ok'} says={status === 'ok' ? text.administration.works : status} />
          </Table.Td>
          <Table.Td>
            {problem !== null && (
              <Text size="sm">
                <Prose>{problem}</Prose>
              </Text>
            )}
            {fix !== null && (
              <Text size="sm">
                {text.administration.fix}: <Prose>{fix}</Prose>
              </Text>
            )}
            {name === 'compute' && (
              <Text size="sm" c="dimmed">
                {compute.engine} {compute.version}, {compute.accel}: {compute.accel_reason}
              </Text>
            )}
          </Table.Td>
        </Table.Tr>
      ))}
    </ListTable>
  );
}

function State({ isOk, says }: { isOk: boolean; says: string }) {
  return <StateBadge tone={isOk ? 'good' : 'bad'} word={says} />;
}

function Engines({ engines }: { engines: SystemStatus['components']['databases']['engines'] }) {
  return (
    <section>
      <Title order={2} mb="xs">
        {text.administration.engines}
      </Title>
      <ListTable
        heads={[
          { name: text.administration.engine },
          { name: text.administration.state },
          { name: text.administration.details },
        ]}
      >
        {engines.map(({ engine, available, version, source, reason, fix }) => (
          <Table.Tr key={engine}>
            <Table.Td>
              {text.databases.engines[engine as keyof typeof text.databases.engines]} {version}
            </Table.Td>
            <Table.Td>
              <State
                isOk={available}
                says={available ? text.administration.available : text.administration.unavailable}
              />
            </Table.Td>
            <Table.Td>
              <Text size="sm" c="dimmed">
                {reason === null ? source : `${source}: ${reason}`}
              </Text>
              {fix !== null && (
                <Text size="sm">
                  {text.administration.fix}: <Prose>{fix}</Prose>
                </Text>
              )}
            </Table.Td>
          </Table.Tr>
        ))}
      </ListTable>
    </section>
  );
}
