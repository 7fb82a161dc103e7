/** The databases, including deleted ones that can be undeleted. */

import { CircleStackIcon, PlusIcon } from '@heroicons/react/24/outline';
import { Button, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Database } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { ManyDialog } from '../../parts/many/many-dialog.tsx';
import { showDone } from '../../parts/notices.tsx';
import { Empty, Loaded, Page } from '../../parts/page.tsx';
import { sayBytes, sayHourly } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { AnchorLink, ButtonLink } from '../../parts/tables/links.tsx';
import { ListTable } from '../../parts/tables/list-table.tsx';
import { DatabaseState } from '../../parts/tables/state-badge.tsx';
import { When } from '../../parts/tables/when.tsx';
import { listsText } from '../../texts/lists-text.ts';
import { text } from '../../texts/text.ts';
import { EngineTitle } from './engine-title.tsx';
import { databasesQuery, keptDatabasesQuery } from './queries/queries.ts';

const words = text.databases;
const lists = listsText.databases;

export function DatabasesPage() {
  const databases = useQuery(databasesQuery);
  // Stays open when the last database is gone.
  const [deleted, setDeleted] = useState<readonly Database[]>();
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
            <DatabaseList databases={all} onDelete={setDeleted} />
          )
        }
      </Loaded>
      <Kept />
      {deleted !== undefined && (
        <ManyDialog
          title={lists.title(deleted.length)}
          lead={lists.lead}
          action={lists.action(deleted.length)}
          label={words.title}
          items={deleted}
          keyOf={({ database_id: id }) => id}
          nameOf={({ name }) => name}
          send={({ database_id: id }) => cloud.deleteDatabase(id)}
          queryKey={databasesQuery.queryKey}
          isDangerous
          onClose={() => setDeleted(undefined)}
        />
      )}
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

interface DatabaseListProps {
  readonly databases: readonly Database[];
  readonly onDelete: (databases: readonly Database[]) => void;
}

function DatabaseList({ databases, onDelete }: DatabaseListProps) {
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
      many={{
        say: lists.say,
        actions: (selected) => (
          <Button size="compact-sm" variant="default" onClick={() => onDelete(selected)}>
            {lists.button}
          </Button>
        ),
        onDelete,
      }}
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
