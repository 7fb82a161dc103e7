/** Rows of a file as rows of a table. */
import { openAsBlob } from 'node:fs';
import { basename } from 'node:path';
import type { Cloud, DatabaseImport } from '../../sdk/index.ts';
import type { Command, Invocation } from '../command.ts';
import { findDatabase } from '../commands/database-commands.ts';
import { UsageError } from '../failures.ts';
import { counted } from '../output.ts';
import { withInput } from '../own-files.ts';

type ImportQuery = Parameters<Cloud['importDatabaseRows']>[2];

/** The part of a file that a dry run reads. */
const BEGINNING_BYTES = 2 ** 20;
const TEXTS = ['schema', 'format', 'separator', 'empty', 'columns'] as const;

async function importRows({ session, options, output, words }: Invocation): Promise<void> {
  const { cloud } = session();
  const [name = '', path = '-', given] = words;
  const { database_id: id } = await findDatabase(cloud, name);
  const table = given ?? basename(path).replace(/\.[^.]*$/, '');
  if (table === '' || (path === '-' && given === undefined))
    throw new UsageError(
      'the table has no name',
      'Give the table after the file: cloudlet db import SHOP - goods',
    );
  const isDry = options.has('dry-run');
  const header = options.text('header');
  if (header !== undefined && header !== 'yes' && header !== 'no')
    throw new UsageError(
      '--header must be yes or no',
      'Without --header, the cloud detects whether the first row contains names',
    );
  const query: Record<string, unknown> = { table, dry_run: isDry };
  for (const one of TEXTS) {
    const chosen = options.text(one);
    if (chosen !== undefined) query[one] = chosen === '\\t' ? '\t' : chosen;
  }
  if (header !== undefined) query.header = header === 'yes';
  await withInput(path, async (source) => {
    const file = await openAsBlob(source);
    const sent = isDry ? file.slice(0, BEGINNING_BYTES) : file;
    const done = await cloud.importDatabaseRows(id, { file: sent }, query as ImportQuery);
    output.one(done, () => (isDry ? shown(done) : said(done)));
  });
}

function said({ rows, table, created }: DatabaseImport): string[] {
  return [`${counted(rows, 'row')} added to ${table}${created ? ', a new table' : ''}`];
}

function shown({ columns, created, table }: DatabaseImport): string[] {
  const width = Math.max(...columns.map(({ field }) => field.length));
  const lines = columns.map(({ field, name, type }) => {
    const to = name === null ? 'left out' : name === field ? '' : `→ ${name}`;
    return `${field.padEnd(width)}  ${type ?? ''}  ${to}`.trimEnd();
  });
  return [created ? `${table} would be created:` : `${table} exists:`, ...lines];
}

export const IMPORT_COMMAND: Command = {
  name: 'db import',
  words: 'DATABASE FILE [TABLE]',
  summary: 'add the rows of a CSV or JSON file to a table, all or none',
  details: [
    'A missing table is created with types guessed from the beginning of the file. --dry-run shows them, and',
    `--columns changes them: --columns '{"Zip":{"name":"zip","type":"text"},"Note":null}'. FILE may be - with TABLE.`,
  ].join('\n'),
  options: {
    'dry-run': { summary: 'only show the columns and their types' },
    columns: {
      value: 'JSON',
      summary: 'names and types of columns, by field of the file; null skips a field',
    },
    header: { value: 'YES|NO', summary: 'whether the first row contains the column names' },
    separator: { value: 'CHARACTER', summary: String.raw`character between fields; \t for a tab` },
    empty: {
      value: 'MEANING',
      summary: 'how to read an empty field: unquoted (NULL, but "" is text), null or text',
    },
    format: { value: 'FORMAT', summary: 'csv or json' },
    schema: { value: 'SCHEMA', summary: 'schema of the table' },
  },
  run: importRows,
};
