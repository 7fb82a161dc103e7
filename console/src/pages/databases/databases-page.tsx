/** The databases, including deleted ones that can be undeleted. */

import { CircleStackIcon, PlusIcon } from '@heroicons/react/24/outline';
import { Button, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { Database } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { showDone } from '../../parts/notices.tsx';
import { Empty, Loaded, Page } from '../../parts/page.tsx';
import { sayBytes, sayHourly } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { AnchorLink, ButtonLink } from '../../parts/tables/links.tsx';
import { ListTable } from '../../parts/tables/list-table.tsx';
import { DatabaseState } from '../../parts/tables/state-badge.tsx';
import { When } from '../../parts/tables/when.tsx';
import { text } from '../../texts/text.ts';
import { EngineTitle } from './engine-title.tsx';
import { databasesQuery, keptDatabasesQuery } from './queries/queries.ts';

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
            <DatabaseList databases={all} />
          )
        }
      </Loaded>
      <Kept />
    </Page>
  );
}

const COLUMNS: readonly Column<Database>[] = [
  {
    name: words.name,
    id: 'name',
    value: ({ name }) => name,
    cell: ({ database_id: id, name }) => (
      <AnchorLink to="/databases/$database" params={{ database: id }} fw={550}>
        {name}
      </AnchorLink>
    ),
  },
  {
    name: words.engine,
    id: 'engine',
    value: ({ engine }) => engine,
    cell: ({ engine }) => <EngineTitle engine={engine} />,
  },
  {
    name: words.state,
    id: 'state',
    value: ({ state }) => words.states[state],
    cell: (database) => <DatabaseState database={database} />,
  },
  {
    name: words.size,
    id: 'size',
    value: ({ size_bytes: bytes }) => bytes,
    cell: ({ size_bytes: bytes }) => sayBytes(bytes),
  },
  {
    name: words.price,
    id: 'price',
    value: ({ price_per_hour: price }) => Number(price),
    cell: ({ price_per_hour: price }) => sayHourly(price),
  },
  {
    name: words.created,
    id: 'created',
    value: ({ created_at: at }) => at,
    cell: ({ created_at: at }) => <When at={at} />,
  },
];

function DatabaseList({ databases }: { databases: readonly Database[] }) {
  const view = useSearch({ from: '/shell/databases' });
  const navigate = useNavigate({ from: '/databases' });
  return (
    <ListTable
      columns={COLUMNS}
      rows={databases}
      keyOf={({ database_id: id }) => id}
      nameOf={({ name }) => name}
      textOf={({ name, database_id, engine, state }) =>
        [name, database_id, engine, words.states[state]].join(' ')
      }
      view={view}
      onView={(search) => navigate({ search, replace: true })}
    />
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
  const columns: readonly Column<Database>[] = [
    { name: words.name, cell: ({ name }) => name },
    { name: words.engine, cell: ({ engine }) => <EngineTitle engine={engine} /> },
    { name: words.kept.until, cell: ({ deletes_at: at }) => <When at={at} /> },
    {
      name: words.actions,
      isActions: true,
      cell: ({ database_id: id }) => (
        <Button
          size="compact-sm"
          variant="default"
          loading={restore.isPending && restore.variables === id}
          onClick={() => restore.mutate(id)}
        >
          {words.kept.restore}
        </Button>
      ),
    },
  ];
  return (
    <section>
      <Title order={2} mb="xs">
        {words.kept.title}
      </Title>
      <DataTable columns={columns} rows={kept} keyOf={({ database_id: id }) => id} />
    </section>
  );
}
