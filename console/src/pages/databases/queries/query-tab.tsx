/** The query editor, loaded on demand: statements, results and history. */

import { ClockIcon } from '@heroicons/react/24/outline';
import { Alert, Button, Group, Kbd, Menu, Stack, Switch, Text } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Database, DatabaseEngine, DatabaseQuery, DatabaseTable } from '../../../../../sdk/index.ts';
import { CallSample } from '../../../parts/commands/call-sample.tsx';
import { Refused, Warning } from '../../../parts/forms/warning.tsx';
import { queriesText as words } from '../../../texts/queries-text.ts';
import classes from '../databases.module.css';
import { type Grammar, grammarOf } from './grammar.ts';
import { PagedResult } from './paged-result.tsx';
import { PlanView } from './plan-view.tsx';
import { tablesQuery } from './queries.ts';
import { QueryEditor, type Range } from './query-editor.tsx';
import { QueryTabs, useQueryTabs } from './query-tabs.tsx';
import { bodyOf, nameOf, selectOf, useRun } from './run.ts';
import { SavedMenu } from './saved-menu.tsx';
import { statementsOf } from './statements.ts';

const STATEMENT_SECONDS = 10;
const FIRST_ROWS = 100;
/** Labels used by the engines. */
const REFUSED_WRITING = /read[- ]?only/i;
const MODIFIER = /Mac|iP/.test(navigator.platform) ? '⌘' : 'Ctrl';

export function QueryTab({ database, engine }: { database: Database; engine: DatabaseEngine }) {
  const { table } = useSearch({ from: '/shell/databases/$database' });
  const { data: tables = [], isPending } = useQuery(tablesQuery(database.database_id));
  // The quoting of a name in statements is known with the tables.
  if (table !== undefined && isPending) return <Group h={320} aria-busy="true" />;
  const open = tables.find((one) => nameOf(one) === table);
  return <TabbedEditors database={database} engine={engine} tables={tables} open={open} />;
}

interface EditorProps {
  readonly database: Database;
  readonly engine: DatabaseEngine;
  readonly tables: readonly DatabaseTable[];
  readonly open: DatabaseTable | undefined;
}

function TabbedEditors({ open, ...props }: EditorProps) {
  const { database_id: id } = props.database;
  const grammar = grammarOf(props.engine);
  const history = useHistory(id);
  const first = grammar === 'documents' ? '{ "listCollections": 1 }' : 'SELECT 1 AS one';
  const kept = useQueryTabs(id, {
    first: history.entries[0] ?? first,
    asked:
      open === undefined
        ? null
        : { name: nameOf(open), text: selectOf(grammar, open, { limit: FIRST_ROWS }) },
  });
  const { active, change } = kept;
  return (
    <QueryTabs databaseId={id} kept={kept}>
      <Editor
        key={active.id}
        {...props}
        history={history}
        typed={active.text}
        onType={(typed) => change(active.id, { text: typed })}
      />
    </QueryTabs>
  );
}

interface OneEditorProps extends Omit<EditorProps, 'open'> {
  readonly history: History;
  readonly typed: string;
  readonly onType: (typed: string) => void;
}

function Editor(props: OneEditorProps) {
  const { database, engine, tables, history, typed, onType: setTyped } = props;
  const { database_id: id } = database;
  const grammar = grammarOf(engine);
  const [selected, setSelected] = useState<Range | null>(null);
  const [isReadOnly, setReadOnly] = useState(true);
  const query = useRun(id, grammar);
  const [explained, setExplained] = useState<Explained | null>(null);
  const wanted = (range: Range | null) => {
    const { from, to } = range ?? { from: 0, to: typed.length };
    const found = statementsOf(grammar, typed.slice(from, to));
    return found.map((one) => ({ text: one.text, from: one.from + from }));
  };
  const run = (range: Range | null) => {
    const statements = wanted(range);
    if (statements.length === 0 || query.isPending) return;
    history.add(range === null ? typed : typed.slice(range.from, range.to));
    setExplained(null);
    query.mutate({ statements, isReadOnly });
  };
  const explain = () => {
    const [first] = wanted(selected);
    if (first === undefined) return;
    query.reset();
    setExplained(explainedOf(grammar, first.text));
  };
  return (
    <Stack>
      <QueryEditor
        grammar={grammar}
        value={typed}
        tables={tables}
        label={words.editor}
        wrong={query.wrong}
        onChange={setTyped}
        onSelect={setSelected}
        onRun={run}
      />
      <Group justify="space-between">
        <Group>
          {query.isPending ? (
            <Button variant="default" onClick={query.cancel}>
              {words.cancel}
            </Button>
          ) : (
            <Button onClick={() => run(selected)}>{selected === null ? words.run : words.runSelected}</Button>
          )}
          <Button variant="default" title={words.explainLead} disabled={query.isPending} onClick={explain}>
            {words.explain}
          </Button>
          <Switch
            label={words.readOnly}
            title={words.readOnlyLead}
            checked={isReadOnly}
            onChange={({ currentTarget }) => setReadOnly(currentTarget.checked)}
          />
          <Text size="xs" c="dimmed" visibleFrom="sm">
            <Kbd size="xs">{MODIFIER}</Kbd> + <Kbd size="xs">Enter</Kbd>
          </Text>
        </Group>
        <Group gap="xs">
          <SavedMenu id={id} typed={typed} onChoose={setTyped} />
          <HistoryMenu history={history} onChoose={setTyped} />
        </Group>
      </Group>
      {explained === null ? (
        <Outcome id={id} query={query} typed={typed} />
      ) : (
        <Explanation id={id} explained={explained} />
      )}
      <Limits engine={engine} />
      <Sample
        id={id}
        grammar={grammar}
        statement={wanted(selected)[0]?.text ?? typed}
        isReadOnly={isReadOnly}
      />
    </Stack>
  );
}

/** null: the command is not JSON. */
type Explained = { readonly asked: Pick<DatabaseQuery, 'statement' | 'command'> | null };

function explainedOf(grammar: Grammar, statement: string): Explained {
  try {
    return { asked: bodyOf(grammar, statement, true) };
  } catch (error) {
    if (error instanceof SyntaxError) return { asked: null };
    throw error;
  }
}

function Explanation({ id, explained: { asked } }: { readonly id: string; readonly explained: Explained }) {
  if (asked === null) return <Warning isError>{words.notJson}</Warning>;
  return <PlanView key={JSON.stringify(asked)} id={id} asked={asked} />;
}

function Limits({ engine }: { engine: DatabaseEngine }) {
  return (
    <Text size="xs" c="dimmed">
      {words.limits(Math.min(engine.limits.statement_seconds, STATEMENT_SECONDS))}
      {grammarOf(engine) !== 'documents' && ` ${words.each}`}
    </Text>
  );
}

interface OutcomeProps {
  readonly id: string;
  readonly query: ReturnType<typeof useRun>;
  readonly typed: string;
}

function Outcome({ id, query, typed }: OutcomeProps) {
  const { done, error } = query;
  const isOne = query.variables?.statements.length === 1;
  return (
    <>
      {done.map(({ statement, body, result }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: results have no names, and none moves
        <Stack key={index} gap={4} component="section">
          {!isOne && (
            <Text size="sm" className="mono" truncate>
              {statement}
            </Text>
          )}
          <PagedResult key={body.query_id} id={id} body={body} first={result} />
        </Stack>
      ))}
      {error !== null && <Failed query={query} typed={typed} />}
    </>
  );
}

function Failed({ query: { error, variables, wrong }, typed }: Omit<OutcomeProps, 'id'>) {
  if (error instanceof DOMException && error.name === 'AbortError') {
    return <Alert color="gray">{words.cancelled}</Alert>;
  }
  const lines = wrong === null ? [] : typed.slice(0, wrong.from).split('\n');
  const position = wrong !== null && (
    <Text size="sm">{words.position(lines.length, (lines.at(-1)?.length ?? 0) + 1)}</Text>
  );
  if (error instanceof SyntaxError)
    return (
      <>
        <Warning isError>{words.notJson}</Warning>
        {position}
      </>
    );
  return (
    <>
      <Refused error={error} />
      {position}
      {variables?.isReadOnly === true && REFUSED_WRITING.test(error?.message ?? '') && (
        <Text size="sm">{words.turnOff}</Text>
      )}
    </>
  );
}

interface SampleProps {
  readonly id: string;
  readonly grammar: Grammar;
  readonly statement: string;
  readonly isReadOnly: boolean;
}

function Sample({ id, grammar, statement, isReadOnly }: SampleProps) {
  let body: DatabaseQuery;
  try {
    body = bodyOf(grammar, statement, isReadOnly);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  return <CallSample operation="queryDatabase" args={[id, body]} />;
}

const KEPT_ENTRIES = 50;
const KEPT_MAX_LENGTH = 20_000;

interface History {
  /** Newest first. */
  readonly entries: readonly string[];
  readonly add: (statement: string) => void;
  readonly clear: () => void;
}

function useHistory(databaseId: string): History {
  const [entries, setEntries, clear] = useLocalStorage<readonly string[]>({
    key: `cloudlet.queries.${databaseId}`,
    defaultValue: [],
    getInitialValueInEffect: false,
  });
  const add = (statement: string) => {
    if (statement.length > KEPT_MAX_LENGTH) return;
    setEntries((before) => [statement, ...before.filter((one) => one !== statement)].slice(0, KEPT_ENTRIES));
  };
  return { entries, add, clear };
}

interface HistoryMenuProps {
  readonly history: History;
  readonly onChoose: (statement: string) => void;
}

function HistoryMenu({ history: { entries, clear }, onChoose }: HistoryMenuProps) {
  const [isOpen, setOpen] = useState(false);
  // Without an item that can be chosen, the focus stays on the button.
  const closeByKey = ({ key }: { key: string }) => key === 'Escape' && setOpen(false);
  return (
    <Menu position="bottom-end" width={420} opened={isOpen} onChange={setOpen}>
      <Menu.Target>
        <Button variant="default" leftSection={<ClockIcon width={18} />} onKeyDown={closeByKey}>
          {words.history}
        </Button>
      </Menu.Target>
      <Menu.Dropdown className={classes.history ?? ''}>
        {entries.length === 0 ? (
          <Menu.Item disabled>{words.historyEmpty}</Menu.Item>
        ) : (
          <>
            {entries.map((statement) => (
              <Menu.Item key={statement} onClick={() => onChoose(statement)}>
                <Text size="sm" className="mono" lineClamp={2}>
                  {statement}
                </Text>
              </Menu.Item>
            ))}
            <Menu.Divider />
            <Menu.Item onClick={clear}>{words.clearHistory}</Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
