/** Each part of the cloud, how it is, and what to do about it. */
import { Badge, Stack, Table, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { SystemStatus } from '../../../../sdk/index.ts';
import { ListTable } from '../../parts/list-table.tsx';
import { Loaded } from '../../parts/page.tsx';
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
      {alarms.map(({ code, detail, since }) => (
        <div key={code}>
          {detail} (<When at={since} />)
        </div>
      ))}
    </Warning>
  );
}

function Components({ components }: { components: SystemStatus['components'] }) {
  const { compute } = components;
  const all = Object.entries(components) as [
    keyof typeof components,
    { status: string; problem: string | null },
  ][];
  return (
    <ListTable heads={[{ name: text.administration.component }, { name: text.administration.state }]}>
      {all.map(([name, { status, problem }]) => (
        <Table.Tr key={name}>
          <Table.Td>{text.administration.components[name]}</Table.Td>
          <Table.Td>
            <State isOk={status === 'ok'} says={status} />
            {problem !== null && <Text size="sm">{problem}</Text>}
            {name === 'compute' && compute.fix !== null && (
              <Text size="sm">
                {text.administration.fix}: {compute.fix}
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
  return (
    <Badge variant="light" color={isOk ? 'teal' : 'red'}>
      {says}
    </Badge>
  );
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
          { name: text.administration.source },
          { name: text.administration.fix },
        ]}
      >
        {engines.map(({ engine, available, version, source, reason, fix }) => (
          <Table.Tr key={engine}>
            <Table.Td>
              {engine} {version}
            </Table.Td>
            <Table.Td>
              <State
                isOk={available}
                says={available ? text.administration.available : text.administration.unavailable}
              />
            </Table.Td>
            <Table.Td>{source}</Table.Td>
            <Table.Td>
              {reason !== null && <Text size="sm">{reason}</Text>}
              {fix !== null && <Text size="sm">{fix}</Text>}
            </Table.Td>
          </Table.Tr>
        ))}
      </ListTable>
    </section>
  );
}
