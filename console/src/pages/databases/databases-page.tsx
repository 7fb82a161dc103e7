/** The databases, and those that were deleted and can still be brought back. */

import { CircleStackIcon, PlusIcon } from '@heroicons/react/24/outline';
import { Button, Table, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { Database } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { AnchorLink, ButtonLink } from '../../parts/links.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Empty, Loaded, Page } from '../../parts/page.tsx';
import { sayBytes, sayHourly } from '../../parts/say.ts';
import { DatabaseState } from '../../parts/state-badge.tsx';
import { When } from '../../parts/when.tsx';
import { text } from '../../texts/text.ts';
import { databasesQuery, keptDatabasesQuery } from './queries.ts';

const words = text.databases;

export function DatabasesPage() {
  const databases = useQuery(databasesQuery);
  const create = (
    <ButtonLink to="/databases/new" leftSection={<PlusIcon width={18} />}>
      {words.create}
    </ButtonLink>
  );
  return (
    <Page title={words.title} lead={words.lead} actions={create}>
      <Loaded query={databases}>
        {(all) =>
          all.length === 0 ? (
            <Empty icon={CircleStackIcon} title={words.none} action={create}>
              {words.noneLead}
            </Empty>
          ) : (
            <DatabaseTable databases={all} />
          )
        }
      </Loaded>
      <Kept />
    </Page>
  );
}

function DatabaseTable({ databases }: { databases: readonly Database[] }) {
  return (
    <Table verticalSpacing="sm" highlightOnHover>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{words.name}</Table.Th>
          <Table.Th>{words.engine}</Table.Th>
          <Table.Th>{words.state}</Table.Th>
          <Table.Th visibleFrom="sm">{words.size}</Table.Th>
          <Table.Th visibleFrom="sm">{words.price}</Table.Th>
          <Table.Th visibleFrom="sm">{words.created}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {databases.map((database) => (
          <Table.Tr key={database.database_id}>
            <Table.Td>
              <AnchorLink to="/databases/$database" params={{ database: database.database_id }} fw={550}>
                {database.name}
              </AnchorLink>
            </Table.Td>
            <Table.Td>{words.engines[database.engine]}</Table.Td>
            <Table.Td>
              <DatabaseState database={database} />
            </Table.Td>
            <Table.Td visibleFrom="sm">{sayBytes(database.size_bytes)}</Table.Td>
            <Table.Td visibleFrom="sm">{sayHourly(database.price_per_hour)}</Table.Td>
            <Table.Td visibleFrom="sm">
              <When at={database.created_at} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function Kept() {
  const { data: kept = [] } = useQuery(keptDatabasesQuery);
  const restore = useMutation({
    mutationFn: (id: string) => cloud.undeleteDatabase(id),
    meta: { invalidates: [databasesQuery] },
    onSuccess: ({ name }) => showDone(words.kept.restored(name)),
  });
  if (kept.length === 0) return null;
  return (
    <section>
      <Title order={2} mb="xs">
        {words.kept.title}
      </Title>
      <Table verticalSpacing="sm">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{words.name}</Table.Th>
            <Table.Th>{words.engine}</Table.Th>
            <Table.Th visibleFrom="sm">{words.kept.until}</Table.Th>
            <Table.Th aria-label={words.actions} />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {kept.map(({ database_id: id, name, engine, deletes_at }) => (
            <Table.Tr key={id}>
              <Table.Td>{name}</Table.Td>
              <Table.Td>{words.engines[engine]}</Table.Td>
              <Table.Td visibleFrom="sm">
                <When at={deletes_at} />
              </Table.Td>
              <Table.Td ta="right">
                <Button
                  size="compact-sm"
                  variant="default"
                  loading={restore.isPending && restore.variables === id}
                  onClick={() => restore.mutate(id)}
                >
                  {words.kept.restore}
                </Button>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  );
}
