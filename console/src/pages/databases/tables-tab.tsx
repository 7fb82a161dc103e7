/** Tables or collections of a database, with columns, indexes, foreign keys and rows. */

import { ArrowPathIcon, TableCellsIcon } from '@heroicons/react/24/outline';
import {
  ActionIcon,
  Badge,
  Button,
  Group,
  NavLink,
  SegmentedControl,
  Stack,
  Text,
  TextInput,
  Title,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Database, DatabaseEngine, DatabaseTable } from '../../../../sdk/index.ts';
import { lazyPart } from '../../parts/lazy-part.tsx';
import { Empty, Loaded } from '../../parts/page.tsx';
import { sayBytes } from '../../parts/say.ts';
import { type Column, DataTable } from '../../parts/tables/data-table.tsx';
import { ButtonLink } from '../../parts/tables/links.tsx';
import { text } from '../../texts/text.ts';
import classes from './databases.module.css';
import { type Grammar, grammarOf } from './queries/grammar.ts';
import { tablesQuery } from './queries/queries.ts';
import { nameOf } from './queries/run.ts';

const words = text.databases.tables;
const RowsView = lazyPart(
  () => import('./rows/rows-view.tsx').then((made) => made.RowsView),
  <Group h={320} aria-busy="true" />,
);
const DocumentsView = lazyPart(
  () => import('./documents/documents-view.tsx').then((made) => made.DocumentsView),
  <Group h={320} aria-busy="true" />,
);
const SchemaView = lazyPart(
  () => import('./schema/schema-view.tsx').then((made) => made.SchemaView),
  <Group h={320} aria-busy="true" />,
);
const COLUMNS: readonly Column<DatabaseTable['columns'][number]>[] = [
  { name: words.column, cell: (column) => <ColumnName {...column} /> },
  { name: words.type, isMono: true, cell: ({ type }) => type },
  { name: words.default, isMono: true, cell: (column) => column.default },
];
/** Number of tables from which a search field is shown. */
const MANY = 12;

export function TablesTab({ database, engine }: { database: Database; engine: DatabaseEngine }) {
  const tables = useQuery(tablesQuery(database.database_id));
  const grammar = grammarOf(engine);
  return (
    <Loaded query={tables}>
      {(all) =>
        all.length === 0 ? (
          <Empty
            icon={TableCellsIcon}
            title={grammar === 'documents' ? words.noCollections : words.none}
            action={<QueryLink database={database} />}
          >
            {words.noneLead}
          </Empty>
        ) : (
          <Tables database={database} grammar={grammar} tables={all} onRefresh={() => tables.refetch()} />
        )
      }
    </Loaded>
  );
}

function QueryLink({ database, table }: { database: Database; table?: string }) {
  const search = table === undefined ? { tab: 'query' as const } : { tab: 'query' as const, table };
  return (
    <ButtonLink
      to="/databases/$database"
      params={{ database: database.database_id }}
      search={search}
      variant="default"
    >
      {words.query}
    </ButtonLink>
  );
}

interface TablesProps {
  readonly database: Database;
  readonly grammar: Grammar;
  readonly tables: readonly DatabaseTable[];
  readonly onRefresh: () => void;
}

function Tables({ database, grammar, tables, onRefresh }: TablesProps) {
  const { table: open, view } = useSearch({ from: '/shell/databases/$database' });
  const navigate = useNavigate({ from: '/databases/$database' });
  const [find, setFind] = useState('');
  const openTable = (name: string) =>
    void navigate({
      search: ({ where: _, by: __, match: ___, view: left, ...before }) => ({
        ...before,
        ...(left === 'structure' && { view: left }),
        table: name,
      }),
      replace: true,
    });
  const shown = tables.find((table) => nameOf(table) === open) ?? tables[0];
  return (
    <div className={classes.split}>
      <nav aria-label={words.list}>
        <Group gap={4} mb="xs" wrap="nowrap">
          {tables.length > MANY && (
            <TextInput
              size="xs"
              flex={1}
              aria-label={words.find}
              placeholder={words.find}
              value={find}
              onChange={({ currentTarget }) => setFind(currentTarget.value)}
            />
          )}
          <ActionIcon variant="subtle" color="gray" aria-label={words.refresh} onClick={onRefresh}>
            <ArrowPathIcon width={18} />
          </ActionIcon>
          {grammar !== 'documents' && (
            <Button
              size="xs"
              variant="default"
              aria-pressed={view === 'diagram'}
              onClick={() =>
                navigate({
                  search: ({ view: _, ...before }) =>
                    view === 'diagram' ? before : { ...before, view: 'diagram' },
                })
              }
            >
              {words.diagram}
            </Button>
          )}
        </Group>
        {tables
          .filter((table) => nameOf(table).includes(find))
          .map((table) => (
            <NavLink
              key={nameOf(table)}
              component="button"
              active={table === shown && view !== 'diagram'}
              label={nameOf(table)}
              description={table.type === 'view' ? words.isView : undefined}
              onClick={() => openTable(nameOf(table))}
            />
          ))}
      </nav>
      {view === 'diagram' && grammar !== 'documents' ? (
        <SchemaView tables={tables} onOpen={openTable} />
      ) : (
        shown !== undefined && <OneTable database={database} grammar={grammar} table={shown} />
      )}
    </div>
  );
}

interface OneTableProps {
  readonly database: Database;
  readonly grammar: Grammar;
  readonly table: DatabaseTable;
}

function OneTable({ database, grammar, table }: OneTableProps) {
  const { view } = useSearch({ from: '/shell/databases/$database' });
  const navigate = useNavigate({ from: '/databases/$database' });
  const rows = table.estimated_rows;
  const count = table.type === 'collection' ? words.documents : words.rows;
  const facts = [
    rows === null ? null : count(rows),
    table.size_bytes === null ? null : sayBytes(table.size_bytes),
  ].filter((fact) => fact !== null);
  return (
    <Stack miw={0}>
      <Group justify="space-between">
        <div>
          <Title order={2}>{nameOf(table)}</Title>
          <Text size="sm" c="dimmed">
            {facts.join(' · ')}
          </Text>
        </div>
        <Group gap="xs">
          <SegmentedControl
            size="xs"
            aria-label={words.view}
            value={view ?? 'rows'}
            data={[
              { value: 'rows', label: table.type === 'collection' ? words.allDocuments : words.allRows },
              { value: 'structure', label: words.made },
            ]}
            onChange={(next) =>
              navigate({
                search: ({ view: _, ...before }) =>
                  next === 'structure' ? { ...before, view: 'structure' } : before,
              })
            }
          />
          <QueryLink database={database} table={nameOf(table)} />
        </Group>
      </Group>
      {view === 'structure' ? (
        <Made table={table} />
      ) : (
        <Rows database={database} grammar={grammar} table={table} />
      )}
    </Stack>
  );
}

function Rows({ database, grammar, table }: OneTableProps) {
  if (grammar === 'documents') return <DocumentsView database={database} table={table} key={nameOf(table)} />;
  return <RowsView database={database} table={table} key={nameOf(table)} />;
}

function Made({ table }: { table: DatabaseTable }) {
  return (
    <>
      {table.columns.length > 0 && (
        <DataTable columns={COLUMNS} rows={table.columns} keyOf={({ name }) => name} />
      )}
      {table.indexes.length > 0 && (
        <Listed
          title={words.indexes}
          lines={table.indexes.map(({ name, columns, unique }) => ({
            name,
            note: `${columns.join(', ')}${unique ? ` · ${words.unique}` : ''}`,
          }))}
        />
      )}
      {table.foreign_keys.length > 0 && (
        <Listed
          title={words.foreignKeys}
          lines={table.foreign_keys.map(({ columns, references }) => ({
            name: columns.join(', '),
            note: `→ ${references.table} (${references.columns.join(', ')})`,
          }))}
        />
      )}
    </>
  );
}

function ColumnName({ name, primary_key, nullable }: DatabaseTable['columns'][number]) {
  return (
    <Group gap={6}>
      <span className="mono">{name}</span>
      {primary_key && <Badge variant="light">{words.primaryKey}</Badge>}
      {!nullable && !primary_key && (
        <Badge variant="light" color="gray">
          {words.required}
        </Badge>
      )}
    </Group>
  );
}

interface ListedProps {
  readonly title: string;
  readonly lines: readonly { readonly name: string; readonly note: string }[];
}

function Listed({ title, lines }: ListedProps) {
  return (
    <section>
      <Title order={3}>{title}</Title>
      {lines.map(({ name, note }) => (
        <Text key={`${name} ${note}`} size="sm" className="mono">
          {name}{' '}
          <Text span c="dimmed" inherit>
            {note}
          </Text>
        </Text>
      ))}
    </section>
  );
}
