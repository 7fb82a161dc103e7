/** A CSV or JSON file as rows of a table: guesses are shown, and can be changed before anything runs. */
import {
  Button,
  Checkbox,
  Group,
  NativeSelect,
  Progress,
  Stack,
  Table,
  Text,
  TextInput,
} from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import type { Database, DatabaseImport, DatabaseImportColumn } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { Dialog } from '../../../parts/forms/dialog.tsx';
import { Refused } from '../../../parts/forms/warning.tsx';
import { showDone } from '../../../parts/notices.tsx';
import { Loaded } from '../../../parts/page.tsx';
import { importsText as words } from '../../../texts/imports-text.ts';
import { text } from '../../../texts/text.ts';
import classes from '../databases.module.css';

/** The part of a file that guessing needs. */
const BEGINNING_BYTES = 512 * 1024;
const SEPARATORS = [',', ';', '\t', '|'];
const TYPES = ['text', 'integer', 'number', 'boolean', 'date', 'timestamp', 'bytes', 'json'] as const;
const EMPTY = ['unquoted', 'null', 'text'] as const;
const TYPING_MS = 400;

interface ImportProps {
  readonly database: Database;
  readonly file: File;
  /** Whether JSON becomes documents, which are stored unchanged. */
  readonly hasDocuments: boolean;
  readonly onClose: () => void;
}

/** The user's changes to the detected columns, by field of the file; null: the field is not imported. */
type Choices = Readonly<Record<string, { readonly name?: string; readonly type?: string } | null>>;

interface Asked {
  readonly table: string;
  readonly header?: boolean;
  readonly separator?: string;
  readonly empty: (typeof EMPTY)[number];
}

export function ImportDialog(props: ImportProps) {
  return (
    <Dialog opened onClose={props.onClose} title={words.title(props.file.name)} size="xl">
      <Import {...props} />
    </Dialog>
  );
}

function Import({ database: { database_id: id }, file, hasDocuments, onClose }: ImportProps) {
  const [asked, setAsked] = useState<Asked>({ table: tableOf(file.name), empty: 'unquoted' });
  const [choices, setChoices] = useState<Choices>({});
  const [percent, setPercent] = useState(0);
  const [settled] = useDebouncedValue(asked, TYPING_MS);
  const shown = useQuery({
    queryKey: ['databases', id, 'import', file.name, file.size, file.lastModified, settled],
    queryFn: () =>
      cloud.importDatabaseRows(id, { file: file.slice(0, BEGINNING_BYTES) }, { ...settled, dry_run: true }),
    enabled: settled.table !== '',
    placeholderData: keepPreviousData,
    retry: false,
    gcTime: 0,
  });
  const run = useMutation({
    mutationFn: () =>
      cloud.importDatabaseRows(
        id,
        { file },
        { ...asked, columns: JSON.stringify(choices) },
        { onProgress: (sent, total) => setPercent(Math.floor((sent / total) * 100)) },
      ),
    meta: { shown: true, invalidates: [{ queryKey: ['databases', id] }] },
    onSuccess: ({ rows, table }) => {
      showDone(words.done(rows, table));
      onClose();
    },
  });
  const isFresh = settled === asked && !shown.isPlaceholderData;
  return (
    <Stack>
      <TextInput
        label={hasDocuments ? words.collection : words.table}
        description={
          shown.data === undefined
            ? ' '
            : (hasDocuments ? words.intoCollection : words.target)(shown.data.created)
        }
        value={asked.table}
        onChange={({ currentTarget }) => setAsked({ ...asked, table: currentTarget.value })}
      />
      <Loaded query={shown}>
        {(plan) => (
          <>
            {plan.format === 'csv' && <CsvChoices plan={plan} asked={asked} onChange={setAsked} />}
            {hasDocuments && plan.format === 'json' ? (
              <Text size="sm">{words.whole}</Text>
            ) : (
              <Columns plan={plan} choices={choices} onChange={setChoices} />
            )}
          </>
        )}
      </Loaded>
      <Refused error={run.error} />
      {run.isPending && <Progress value={percent} aria-label={words.sent(percent)} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          {text.shell.cancel}
        </Button>
        <Button loading={run.isPending} disabled={!shown.isSuccess || !isFresh} onClick={() => run.mutate()}>
          {words.submit}
        </Button>
      </Group>
    </Stack>
  );
}

function tableOf(fileName: string): string {
  return fileName.replace(/\.[^.]*$/, '');
}

interface CsvChoicesProps {
  readonly plan: DatabaseImport;
  readonly asked: Asked;
  readonly onChange: (asked: Asked) => void;
}

function CsvChoices({ plan, asked, onChange }: CsvChoicesProps) {
  return (
    <Group align="flex-end">
      <NativeSelect
        label={words.separator}
        value={plan.separator ?? ','}
        data={SEPARATORS.map((value) => ({ value, label: words.separators[value] ?? value }))}
        onChange={({ currentTarget }) => onChange({ ...asked, separator: currentTarget.value })}
      />
      <NativeSelect
        label={words.empty}
        value={asked.empty}
        data={EMPTY.map((value) => ({ value, label: words.meanings[value] }))}
        onChange={({ currentTarget }) =>
          onChange({ ...asked, empty: EMPTY.find((one) => one === currentTarget.value) ?? 'unquoted' })
        }
      />
      <Checkbox
        mb={8}
        label={words.header}
        checked={plan.header ?? true}
        onChange={({ currentTarget }) => onChange({ ...asked, header: currentTarget.checked })}
      />
    </Group>
  );
}

interface ColumnsProps {
  readonly plan: DatabaseImport;
  readonly choices: Choices;
  readonly onChange: (choices: Choices) => void;
}

/** Examples of a field that are shown beside it. */
const EXAMPLES = 3;

function Columns({ plan, choices, onChange }: ColumnsProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
    <section className={classes.resultBox} tabIndex={0} aria-label={words.columns}>
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{words.field}</Table.Th>
            <Table.Th>{words.column}</Table.Th>
            <Table.Th>{words.type}</Table.Th>
            <Table.Th>{words.examples}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {plan.columns.map((column, at) => (
            <ColumnRow
              key={column.field}
              column={column}
              choice={choices[column.field]}
              examples={plan.sample.slice(0, EXAMPLES).map((row) => row[at])}
              onChange={(next) => onChange({ ...choices, [column.field]: next })}
            />
          ))}
        </Table.Tbody>
      </Table>
    </section>
  );
}

interface ColumnRowProps {
  readonly column: DatabaseImportColumn;
  readonly choice: Choices[string] | undefined;
  readonly examples: readonly unknown[];
  readonly onChange: (choice: NonNullable<Choices[string]> | null) => void;
}

function ColumnRow({ column: { field, name, type }, choice, examples, onChange }: ColumnRowProps) {
  const isOut = choice === null || (choice === undefined && name === null);
  return (
    <Table.Tr>
      <Table.Td>
        <Checkbox
          label={field}
          checked={!isOut}
          onChange={({ currentTarget }) => onChange(currentTarget.checked ? {} : null)}
        />
      </Table.Td>
      <Table.Td>
        <TextInput
          size="xs"
          aria-label={words.columnOf(field)}
          disabled={isOut}
          value={choice?.name ?? name ?? field}
          onChange={({ currentTarget }) => onChange({ ...choice, name: currentTarget.value })}
        />
      </Table.Td>
      <Table.Td>
        {type !== null && (
          <NativeSelect
            size="xs"
            aria-label={words.typeOf(field)}
            disabled={isOut}
            value={choice?.type ?? type ?? 'text'}
            data={TYPES.map((value) => ({ value, label: words.types[value] }))}
            onChange={({ currentTarget }) => onChange({ ...choice, type: currentTarget.value })}
          />
        )}
      </Table.Td>
      <Table.Td>
        <Text size="xs" c="dimmed" className="mono" truncate maw={240}>
          {examples.map(sayValue).join(' · ')}
        </Text>
      </Table.Td>
    </Table.Tr>
  );
}

function sayValue(value: unknown): ReactNode {
  if (value === null || value === undefined) return 'NULL';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
