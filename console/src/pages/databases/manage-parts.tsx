/** Parts of the tab Manage: the layout, and those without a form. */

import { Button, Code, FileButton, Group, List, Paper, Progress, Text, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import type { Database, DatabaseEngine, LoadedDatabase } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useDownload } from '../../parts/commands/download.ts';
import { Confirm } from '../../parts/forms/dialog.tsx';
import { Warning } from '../../parts/forms/warning.tsx';
import { lazyPart } from '../../parts/lazy-part.tsx';
import { showDone } from '../../parts/notices.tsx';
import { databaseCareText as words } from '../../texts/database-care-text.ts';

export function DumpPart({ database }: { database: Database }) {
  const download = useDownload('dumpDatabase', [database.database_id]);
  return (
    <Part
      title={words.dump}
      lead={words.dumpLead}
      action={
        <Button variant="default" loading={download.isPending} onClick={() => download.mutate()}>
          {words.dumpSubmit}
        </Button>
      }
    />
  );
}

/** Names of files with rows for a table; other files are dumps. */
const ROWS = /\.(?:csv|tsv|json|jsonl|ndjson)$/i;
const ImportDialog = lazyPart(() => import('./imports/import-dialog.tsx').then((made) => made.ImportDialog));

interface LoadProps {
  readonly database: Database;
  readonly engine: DatabaseEngine;
}

export function LoadPart({ database, engine }: LoadProps) {
  const [file, setFile] = useState<File | null>(null);
  const [percent, setPercent] = useState(0);
  const [loaded, setLoaded] = useState<LoadedDatabase | null>(null);
  const load = useMutation({
    mutationFn: (chosen: File) =>
      cloud.loadDatabase(
        database.database_id,
        { file: chosen },
        {},
        {
          onProgress: (sent, total) => setPercent(Math.floor((sent / total) * 100)),
        },
      ),
    meta: { shown: true, invalidates: [{ queryKey: ['databases', database.database_id] }] },
    onSuccess: (loaded) => {
      setFile(null);
      setPercent(0);
      setLoaded(loaded);
      showDone(loaded.added ? words.added : words.loaded);
    },
  });
  const close = () => {
    if (load.isPending) return;
    setFile(null);
    load.reset();
  };
  const hasRows = file !== null && ROWS.test(file.name);
  return (
    <Part
      title={words.load}
      lead={`${words.loadLead} ${engine.traits.language === 'sql' ? words.loadRows : words.loadDocuments}`}
      action={
        <FileButton onChange={setFile}>
          {(props) => (
            <Button {...props} variant="default">
              {words.loadChoose}
            </Button>
          )}
        </FileButton>
      }
    >
      {hasRows && (
        <ImportDialog
          database={database}
          file={file}
          hasDocuments={engine.traits.language === 'documents'}
          onClose={() => setFile(null)}
        />
      )}
      {loaded !== null && loaded.left_out > 0 && <LeftOut loaded={loaded} />}
      <Confirm
        isOpen={file !== null && !hasRows}
        title={words.loadAsk(file?.name ?? '')}
        action={words.loadSubmit}
        typed={database.name}
        isBusy={load.isPending}
        error={load.error}
        onConfirm={() => file !== null && load.mutate(file)}
        onClose={close}
      >
        {words.loadAskLead(database.name)}
        {load.isPending && (
          <>
            <Progress value={percent} mt="sm" aria-label={words.loading(percent)} />
            <Text size="xs" c="dimmed">
              {words.loading(percent)}
            </Text>
          </>
        )}
      </Confirm>
    </Part>
  );
}

/** Statements that the last load left out. */
function LeftOut({ loaded: { left_out: count, notes } }: { loaded: LoadedDatabase }) {
  return (
    <Warning role="alert" title={words.leftOut(count)}>
      <List size="sm">
        {notes.map(({ line, text: what, reason }) => (
          <List.Item key={`${line} ${what}`}>
            {line !== null && `${words.loadLine(line)} `}
            <Code>{what}</Code> {reason}
          </List.Item>
        ))}
      </List>
      {count > notes.length && <Text size="sm">{words.leftOutMore(count - notes.length)}</Text>}
    </Warning>
  );
}

interface PartProps {
  readonly title: string;
  readonly lead?: string;
  /** Aligned at the right. */
  readonly action?: ReactNode;
  readonly children?: ReactNode;
}

/** One action on a database: title, explanation and button. */
export function Part({ title, lead, action, children }: PartProps) {
  return (
    <Paper withBorder p="md" component="section">
      <Group justify="space-between" gap="md">
        <div>
          <Title order={2}>{title}</Title>
          {lead !== undefined && (
            <Text size="sm" c="dimmed" maw="56ch">
              {lead}
            </Text>
          )}
        </div>
        {action}
      </Group>
      {children}
    </Paper>
  );
}
