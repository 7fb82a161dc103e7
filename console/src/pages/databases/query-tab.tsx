/** The query editor, loaded where it is shown: statement, result, and what was run before. */
import { Alert, Button, Group, Kbd, Stack, Switch, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import type { Database, DatabaseQuery } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { CallSample } from '../../parts/call-sample.tsx';
import { Refused } from '../../parts/refused.tsx';
import { Warning } from '../../parts/warning.tsx';
import { text } from '../../texts/text.ts';
import { enginesQuery, tablesQuery } from './queries.ts';
import { QueryEditor } from './query-editor.tsx';
import { HistoryMenu, useHistory } from './query-history.tsx';
import { ResultGrid } from './result-grid.tsx';

const words = text.databases.query;
const STATEMENT_SECONDS = 10;

/** The body of the call. Throws SyntaxError when a command of MongoDB is no JSON. */
function bodyOf(engine: Database['engine'], statement: string, isReadOnly: boolean): DatabaseQuery {
  const read_only = isReadOnly ? {} : { read_only: false };
  if (engine !== 'mongodb') return { statement, ...read_only };
  return { command: JSON.parse(statement) as Record<string, unknown>, ...read_only };
}

/** What the editor begins with. */
function firstStatement(engine: Database['engine'], table: string | undefined): string {
  if (engine === 'mongodb') {
    return table === undefined
      ? '{ "listCollections": 1 }'
      : `{ "find": ${JSON.stringify(table)}, "filter": {}, "limit": 100 }`;
  }
  if (table === undefined) return 'SELECT 1 AS one';
  const mark = engine === 'mysql' ? '`' : '"';
  const quoted = table.split('.').map((part) => mark + part.replaceAll(mark, mark + mark) + mark);
  return `SELECT * FROM ${quoted.join('.')} LIMIT 100`;
}

export function QueryTab({ database }: { database: Database }) {
  const { database_id: id, engine } = database;
  const { table } = useSearch({ from: '/shell/databases/$database' });
  const history = useHistory(id);
  const [statement, setStatement] = useState(() =>
    table === undefined
      ? (history.entries[0] ?? firstStatement(engine, undefined))
      : firstStatement(engine, table),
  );
  const [isReadOnly, setReadOnly] = useState(true);
  const { data: tables = [] } = useQuery(tablesQuery(id));
  const { data: engines = [] } = useQuery(enginesQuery);
  const seconds = engines.find((one) => one.engine === engine)?.limits.statement_seconds;
  const query = useRun(database);
  const run = () => {
    if (statement.trim() === '' || query.isPending) return;
    history.add(statement);
    query.mutate({ statement, isReadOnly });
  };
  return (
    <Stack>
      <QueryEditor
        engine={engine}
        value={statement}
        tables={tables}
        label={words.editor}
        onChange={setStatement}
        onRun={run}
      />
      <Group justify="space-between">
        <Group>
          {query.isPending ? (
            <Button variant="default" onClick={query.cancel}>
              {words.cancel}
            </Button>
          ) : (
            <Button onClick={run}>{words.run}</Button>
          )}
          <Switch
            label={words.readOnly}
            title={words.readOnlyLead}
            checked={isReadOnly}
            onChange={({ currentTarget }) => setReadOnly(currentTarget.checked)}
          />
          <Text size="xs" c="dimmed" visibleFrom="sm">
            <Kbd size="xs">Ctrl</Kbd> + <Kbd size="xs">Enter</Kbd>
          </Text>
        </Group>
        <HistoryMenu history={history} onChoose={setStatement} />
      </Group>
      <Outcome query={query} />
      <Text size="xs" c="dimmed">
        {words.limits(Math.min(seconds ?? STATEMENT_SECONDS, STATEMENT_SECONDS))}
      </Text>
      <Sample database={database} statement={statement} isReadOnly={isReadOnly} />
    </Stack>
  );
}

interface Run {
  readonly statement: string;
  readonly isReadOnly: boolean;
}

function useRun({ database_id: id, engine }: Database) {
  const queryClient = useQueryClient();
  const abort = useRef<AbortController | null>(null);
  const mutation = useMutation({
    mutationFn: async ({ statement, isReadOnly }: Run) => {
      abort.current = new AbortController();
      return cloud.databases.query(id, bodyOf(engine, statement, isReadOnly), {
        signal: abort.current.signal,
      });
    },
    meta: { shown: true },
    onSuccess: (_, { isReadOnly }) => {
      if (!isReadOnly) void queryClient.invalidateQueries({ queryKey: ['databases', id] });
    },
  });
  return { ...mutation, cancel: () => abort.current?.abort() };
}

function Outcome({ query: { data, error, variables } }: { query: ReturnType<typeof useRun> }) {
  if (error instanceof DOMException && error.name === 'AbortError') {
    return <Alert color="gray">{words.cancelled}</Alert>;
  }
  if (error instanceof SyntaxError) return <Warning isError>{words.notJson}</Warning>;
  if (error !== null) {
    return (
      <>
        <Refused error={error} />
        {variables?.isReadOnly === true && <Text size="sm">{words.turnOff}</Text>}
      </>
    );
  }
  return data === undefined ? null : <ResultGrid result={data} />;
}

function Sample({ database, statement, isReadOnly }: { database: Database } & Run) {
  const { database_id: id, engine } = database;
  let body: DatabaseQuery;
  try {
    body = bodyOf(engine, statement, isReadOnly);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  return (
    <CallSample
      call="POST /api/databases/{database_id}/query"
      params={{ database_id: id }}
      body={body}
      method="databases.query"
      args={[id, body]}
    />
  );
}
