/** The documents of one collection or view: filtered, sorted, changed. */
import { ArrowPathIcon } from '@heroicons/react/24/outline';
import { ActionIcon, Button, Group, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactNode, useMemo, useState } from 'react';
import type { Database, DatabaseRowSort, DatabaseRows, DatabaseTable } from '../../../../../sdk/index.ts';
import { CallSample } from '../../../parts/commands/call-sample.tsx';
import { Refused } from '../../../parts/forms/warning.tsx';
import { documentsText as words } from '../../../texts/documents-text.ts';
import { rowsText } from '../../../texts/rows-text.ts';
import { ExportMenu } from '../rows/export-menu.tsx';
import { LeaveQuestion } from '../rows/leave-question.tsx';
import { Review } from '../rows/review.tsx';
import { DocumentCard } from './document-card.tsx';
import { DocumentEditor } from './document-editor.tsx';
import { type DocumentsAsk, useDocuments } from './document-pages.ts';
import classes from './documents.module.css';
import { DocumentsBar } from './documents-bar.tsx';
import { changesOf, countOf, keyOf, NO_CHANGES, type Pending, withEdit } from './pending.ts';
import { type Document, documentIn, sayId } from './values.ts';

interface ViewProps {
  readonly database: Database;
  readonly table: DatabaseTable;
}

/** The editor that is open, and where its result goes. */
interface Edited {
  readonly title: string;
  readonly document: Document;
  readonly save: (pending: Pending, document: Document) => Pending;
}

export function DocumentsView({ database: { database_id: id }, table }: ViewProps) {
  const { match, sort, ask, onChange } = useAsk(table);
  const documents = useDocuments(id, ask);
  const queryClient = useQueryClient();
  const [pending, setPending] = useState(NO_CHANGES);
  const [edited, setEdited] = useState<Edited | null>(null);
  const [isReviewed, setReviewed] = useState(false);
  const first = documents.data?.pages[0];
  const canEdit = (first?.key.length ?? 0) > 0;
  const insert = (document: Document, title = words.addTitle) =>
    setEdited({
      title,
      document,
      save: (before, made) => ({ ...before, inserts: [...before.inserts, made] }),
    });
  return (
    <Stack gap="xs">
      <DocumentsBar key={`${table.name} ${match}`} match={match} sort={sort} onChange={onChange} />
      <Head
        first={first}
        isReading={documents.isFetching && !documents.isFetchingNextPage}
        onRefresh={() => void documents.refetch()}
      >
        {canEdit && (
          <Button size="xs" variant="default" onClick={() => insert({})}>
            {words.add}
          </Button>
        )}
        <ExportMenu id={id} table={table} hasDocuments />
      </Head>
      <Refused error={documents.error} />
      <ChangesBar
        changes={countOf(pending)}
        onReview={() => setReviewed(true)}
        onDiscard={() => setPending(NO_CHANGES)}
      />
      {first !== undefined && !canEdit && (
        <Text size="sm" c="dimmed">
          {words.viewReadOnly}
        </Text>
      )}
      <Cards
        label={words.listOf(table.name)}
        rows={documents.data?.pages.flatMap(({ rows }) => rows) ?? []}
        pending={pending}
        canEdit={canEdit}
        onPending={setPending}
        onEdit={setEdited}
        onCopy={({ _id, ...rest }) => insert(rest)}
      />
      {first?.rows.length === 0 && pending.inserts.length === 0 && (
        <Text size="sm" c="dimmed">
          {words.none}
        </Text>
      )}
      {documents.hasNextPage && (
        <Button
          variant="default"
          size="xs"
          loading={documents.isFetchingNextPage}
          onClick={() => void documents.fetchNextPage()}
        >
          {words.more}
        </Button>
      )}
      {edited !== null && (
        <DocumentEditor
          title={edited.title}
          document={edited.document}
          onClose={() => setEdited(null)}
          onSave={(document) => {
            setPending((before) => edited.save(before, document));
            setEdited(null);
          }}
        />
      )}
      <LeaveQuestion changes={countOf(pending)} />
      {isReviewed && (
        <Review
          id={id}
          body={{ table: table.name, changes: changesOf(pending) }}
          onClose={() => setReviewed(false)}
          onDone={() => {
            setReviewed(false);
            setPending(NO_CHANGES);
            void queryClient.invalidateQueries({ queryKey: ['databases', id] });
          }}
        />
      )}
      <CallSample operation="readDatabaseRows" args={[id, ask]} />
    </Stack>
  );
}

/** The filter and order of the address, and what changes them. */
function useAsk(table: DatabaseTable) {
  const { match = '', by: sort } = useSearch({ from: '/shell/databases/$database' });
  const navigate = useNavigate({ from: '/databases/$database' });
  const ask = useMemo<DocumentsAsk>(
    () => ({
      table: table.name,
      ...matchOf(match),
      ...(sort === undefined ? {} : { sort: [sort] }),
    }),
    [table.name, match, sort],
  );
  const onChange = (next: string, by: DatabaseRowSort | undefined) =>
    void navigate({
      search: ({ match: _, by: __, ...before }) => ({
        ...before,
        ...(next !== '' && { match: next }),
        ...(by !== undefined && { by }),
      }),
    });
  return { match, sort, ask, onChange };
}

interface HeadProps {
  readonly first: DatabaseRows | undefined;
  readonly isReading: boolean;
  readonly onRefresh: () => void;
  readonly children: ReactNode;
}

function Head({ first, isReading, onRefresh, children }: HeadProps) {
  const counted = first?.total === null ? words.atLeast(first.rows.length) : words.total(first?.total ?? 0);
  return (
    <Group justify="space-between">
      <Group gap="xs">
        <Text size="sm" c="dimmed" role="status">
          {first === undefined ? words.reading : counted}
        </Text>
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={words.refresh}
          loading={isReading}
          onClick={onRefresh}
        >
          <ArrowPathIcon width={18} />
        </ActionIcon>
      </Group>
      <Group gap="xs">{children}</Group>
    </Group>
  );
}

/** A filter in the address may be any text: if it is not JSON, all documents are found. */
function matchOf(match: string): Pick<DocumentsAsk, 'match'> {
  try {
    return match === '' ? {} : { match: { ...documentIn(match) } };
  } catch {
    return {};
  }
}

interface ChangesBarProps {
  readonly changes: number;
  readonly onReview: () => void;
  readonly onDiscard: () => void;
}

function ChangesBar({ changes, onReview, onDiscard }: ChangesBarProps) {
  if (changes === 0) return null;
  return (
    <Group gap="xs">
      <Button size="xs" onClick={onReview}>
        {rowsText.review(changes)}
      </Button>
      <Button size="xs" variant="default" onClick={onDiscard}>
        {rowsText.discard}
      </Button>
    </Group>
  );
}

interface CardsProps {
  readonly label: string;
  readonly rows: readonly (readonly unknown[])[];
  readonly pending: Pending;
  readonly canEdit: boolean;
  readonly onPending: (change: (before: Pending) => Pending) => void;
  readonly onEdit: (edited: Edited) => void;
  readonly onCopy: (document: Document) => void;
}

/** New documents first. A document of which only the `_id` was read has more bytes than that. */
const LARGE_BYTES = 256 * 1024;

function Cards({ label, rows, pending, canEdit, onPending, onEdit, onCopy }: CardsProps) {
  return (
    <ul className={classes.list} aria-label={label}>
      {pending.inserts.map((document, at) => (
        <DocumentCard
          // biome-ignore lint/suspicious/noArrayIndexKey: they have no other
          key={`new ${at}`}
          document={document}
          bytes={null}
          mark="new"
          isPart={false}
          canEdit
          onCopy={() => onCopy(document)}
          onEdit={() =>
            onEdit({
              title: words.addTitle,
              document,
              save: (before, made) => ({ ...before, inserts: before.inserts.with(at, made) }),
            })
          }
          onDelete={() => onPending((before) => ({ ...before, inserts: before.inserts.toSpliced(at, 1) }))}
        />
      ))}
      {rows.map(([found, bytes], index) => {
        const old = found as Document;
        const edit = pending.edits.get(keyOf(old));
        const document = edit?.values ?? old;
        return (
          <DocumentCard
            // biome-ignore lint/suspicious/noArrayIndexKey: documents of views may have no _id
            key={`${keyOf(old)} ${index}`}
            document={document}
            bytes={Number(bytes)}
            mark={edit === undefined ? undefined : edit.values === null ? 'deleted' : 'changed'}
            isPart={Number(bytes) > LARGE_BYTES}
            canEdit={canEdit}
            onCopy={() => onCopy(document)}
            onEdit={() =>
              onEdit({
                title: words.editTitle(sayId(old._id)),
                document,
                save: (before, values) => withEdit(before, { old, values }),
              })
            }
            onDelete={() =>
              onPending((before) => withEdit(before, { old, values: edit?.values === null ? old : null }))
            }
          />
        );
      })}
    </ul>
  );
}
