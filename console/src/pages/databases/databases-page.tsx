/** The databases, including deleted ones that can be undeleted. */

import { CircleStackIcon, PlusIcon } from '@heroicons/react/24/outline';
import { Button, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { Database } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { showDone } from '../../parts/notices.tsx';
import { Empty, Loaded, Page } from '../../parts/page.tsx';
import { sayBytes, sayHourly } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { AnchorLink, ButtonLink } from '../../parts/tables/links.tsx';
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
            <DataTable columns={COLUMNS} rows={all} keyOf={({ database_id: id }) => id} />
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
    cell: ({ database_id: id, name }) => (
      <AnchorLink to="/databases/$database" params={{ database: id }} fw={550}>
        {name}
      </AnchorLink>
    ),
  },
  { name: words.engine, cell: ({ engine }) => <EngineTitle engine={engine} /> },
  { name: words.state, cell: (database) => <DatabaseState database={database} /> },
  { name: words.size, cell: ({ size_bytes: bytes }) => sayBytes(bytes) },
  { name: words.price, cell: ({ price_per_hour: price }) => sayHourly(price) },
  { name: words.created, cell: ({ created_at: at }) => <When at={at} /> },
];

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
