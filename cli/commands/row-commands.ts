/** Rows of a table and documents of a collection: read by pages, inserted, changed and deleted. */
import type { Cloud, DatabaseRows } from '../../sdk/index.ts';
import type { Command, Invocation, Option } from '../command.ts';
import { isTerminal } from '../environment.ts';
import { UsageError } from '../failures.ts';
import { counted, printable } from '../output.ts';
import { assertMeant, YES } from '../resources.ts';
import { engineOf, findDatabase } from './database-commands.ts';
import { filterOf, objectOf, rowOf, rowsOf, sortOf } from './row-words.ts';

type Query = Parameters<Cloud['readDatabaseRows']>[1];
type Changes = Parameters<Cloud['changeDatabaseRows']>[1]['changes'];

const LIMIT = 100;
/** Maximum rows of one call. */
const PAGE = 1000;

/** The database of the first word; `hasDocuments`: it has collections, not tables. */
async function theDatabase({ session, words }: Invocation) {
  const { cloud } = session();
  const database = await findDatabase(cloud, words[0] ?? '');
  const { language } = (await engineOf(cloud, database)).traits;
  return { cloud, id: database.database_id, name: database.name, hasDocuments: language !== 'sql' };
}

const schemaOf = ({ options }: Invocation) => {
  const schema = options.text('schema');
  return schema === undefined ? {} : { schema };
};

async function showRows(call: Invocation): Promise<void> {
  const { cloud, id, name, hasDocuments } = await theDatabase(call);
  const { output, options, words } = call;
  if (hasDocuments) throw new UsageError(`${name} has documents`, `Run: cloudlet db documents ${name} …`);
  const asked = { table: words[1] ?? '', ...schemaOf(call), ...termsOf(call, { hasTypes: false }) };
  if (options.has('csv') && output.isJson) throw new UsageError('--csv and --json cannot be used together');
  const isToldByTable = !options.has('csv') && !output.isJson;
  const shown: (readonly unknown[])[] = [];
  let columns: readonly string[] = [];
  await pages({ cloud, id, asked, call }, (page, isFirst) => {
    columns = page.columns.map((column) => column.name);
    if (isToldByTable) shown.push(...page.rows);
    else if (output.isJson) for (const row of page.rows) output.json(objectFrom(columns, row));
    else writeCsv(isFirst ? [columns, ...page.rows] : page.rows);
  });
  if (isToldByTable) output.table(shown, columns, (row) => row.map(cellOf));
}

async function showDocuments(call: Invocation): Promise<void> {
  const { cloud, id, name, hasDocuments } = await theDatabase(call);
  const { output, options, words } = call;
  if (!hasDocuments) throw new UsageError(`${name} has tables`, `Run: cloudlet db rows ${name} …`);
  const match = options.text('match');
  const asked = {
    table: words[1] ?? '',
    ...termsOf(call, { hasTypes: true }),
    ...(match !== undefined && { match: objectOf('--match', match) }),
  };
  let cut = 0;
  await pages({ cloud, id, asked, call }, (page) => {
    for (const [document, bytes] of page.rows) {
      if (Number(bytes) > WHOLE_BYTES) cut += 1;
      output.json(document);
    }
  });
  if (cut > 0)
    output.warn(`${counted(cut, 'document')} of more than 256 KiB: only the _id is shown (see db export)`);
}

const WHOLE_BYTES = 256 * 1024;

function termsOf({ options }: Invocation, traits: { readonly hasTypes: boolean }): Omit<Query, 'table'> {
  return {
    filter: options.list('filter').map((text) => filterOf(text, traits)),
    sort: options.list('sort').map(sortOf),
  };
}

interface Asked {
  readonly cloud: Cloud;
  readonly id: string;
  readonly asked: Query;
  readonly call: Invocation;
}

/** Calls `take` with each page, until the limit or the end. */
async function pages(
  { cloud, id, asked, call: { options, output } }: Asked,
  take: (page: DatabaseRows, isFirst: boolean) => void,
): Promise<void> {
  const limit = options.count('limit', LIMIT, 1);
  let skip = options.count('skip', 0, 0);
  let after: DatabaseRows['next'] = null;
  for (let left = limit, isFirst = true; left > 0; isFirst = false) {
    const place = after === null ? { skip } : { after };
    const wanted = Math.min(left, PAGE);
    const page = await cloud.readDatabaseRows(id, { ...asked, ...place, limit: wanted });
    take(page, isFirst);
    const { length } = page.rows;
    skip += length;
    left -= length;
    after = page.next;
    if (length === 0 && page.truncated) output.warn('the next row is too large to be shown: see db export');
    if (length === 0 || (length < wanted && !page.truncated)) return;
  }
  output.note(`${counted(limit, 'row')} shown; use --limit and --skip to see more`);
}

/** Also handles a column called `__proto__`. */
function objectFrom(columns: readonly string[], row: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(columns.map((name, at) => [name, row[at] ?? null]));
}

function cellOf(value: unknown): string | number | null {
  if (value === null || typeof value === 'number') return value;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const QUOTED = /[",\r\n]|^$|^\s|\s$/;

/** Like `db export`: NULL is an empty field, and empty text two quotes. */
function writeCsv(rows: readonly (readonly unknown[])[]): void {
  const clean = isTerminal(process.stdout) ? printable : (text: string) => text;
  const lines = rows.map((row) => `${row.map((value) => csvField(value, clean)).join(',')}\r\n`);
  process.stdout.write(lines.join(''));
}

function csvField(value: unknown, clean: (text: string) => string): string {
  if (value === null || value === undefined) return '';
  const base64 = typeof value === 'object' && 'base64' in value ? value.base64 : undefined;
  if (typeof base64 === 'string') return `\\x${Buffer.from(base64, 'base64').toString('hex')}`;
  const text = clean(String(value));
  return QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Applies all of the changes, or none. */
async function change(call: Invocation, changes: Changes, done: string): Promise<void> {
  const { output, options, words } = call;
  const { cloud, id, name } = await theDatabase(call);
  const isDry = options.has('dry-run');
  const deleted = changes.filter(({ action }) => action === 'delete').length;
  if (deleted > 0 && !isDry)
    await assertMeant(call, `Delete ${counted(deleted, 'row')} of ${words[1]} in ${name}?`);
  const table = words[1] ?? '';
  const made = await cloud.changeDatabaseRows(id, { table, ...schemaOf(call), changes, dry_run: isDry });
  output.one(made, () =>
    isDry
      ? made.statements.map(({ statement, command, params }) => {
          const given = params.length === 0 ? '' : `  -- ${JSON.stringify(params)}`;
          return `${statement ?? JSON.stringify(command)}${given}`;
        })
      : [`${counted(made.changed, 'row')} ${done}`],
  );
}

const TERMS: Readonly<Record<string, Option>> = {
  filter: {
    value: 'CONDITION',
    summary: "condition, such as 'price >= 5'; with several, all must match",
    many: true,
  },
  sort: { value: 'COLUMN', summary: "or 'COLUMN desc'; equal values are sorted by the key", many: true },
  limit: { value: 'N', summary: `maximum number of rows; default: ${LIMIT}` },
  skip: { value: 'N', summary: 'skip the first N rows' },
};
const SCHEMA: Readonly<Record<string, Option>> = {
  schema: { value: 'SCHEMA', summary: 'schema of the table' },
};
const CHANGING: Readonly<Record<string, Option>> = {
  ...SCHEMA,
  'dry-run': { summary: 'print the statements without running them' },
};
const ABOUT_OLD = [
  'OLD is the row as printed by "db rows --json" or "db documents"; if the row has changed since, nothing is done. For',
  'tables, the key columns are enough; other columns are then not compared. JSON can be in a file: @FILE.',
];

export const ROW_COMMANDS: readonly Command[] = [
  {
    name: 'db rows',
    words: 'DATABASE TABLE',
    summary: 'print rows of a table, filtered and sorted',
    details: [
      "Conditions: 'price >= 5' (=, !=, <, <=, >, >=), 'name contains tea', 'name starts_with T', 'note is null',",
      '\'note is not null\'. For other names as JSON: \'{"column": "a=b", "operator": "eq", "value": 1}\'.',
      'All rows of a table: cloudlet db export.',
    ].join('\n'),
    options: { ...TERMS, ...SCHEMA, csv: { summary: 'print CSV with a header row' } },
    run: showRows,
  },
  {
    name: 'db documents',
    words: 'DATABASE COLLECTION',
    summary: 'print documents of a collection as Extended JSON, one per line, filtered and sorted',
    details: 'Conditions as in db rows; values have types: 5 is a number and "5" is text.',
    options: {
      ...TERMS,
      match: { value: 'JSON', summary: 'MongoDB filter; combined with --filter' },
    },
    run: showDocuments,
  },
  {
    name: 'db row-add',
    words: 'DATABASE TABLE ROW…',
    summary: 'insert rows into a table, or documents into a collection, all or none',
    details:
      'ROW is a JSON object, or @FILE with one object or an array of objects. Many rows: cloudlet db import.',
    options: CHANGING,
    run: (call) => {
      const rows = call.words.slice(2).flatMap((text) => rowsOf('ROW', text));
      const changes = rows.map((values) => ({ action: 'insert' as const, values }));
      return change(call, changes, 'inserted');
    },
  },
  {
    name: 'db row-change',
    words: 'DATABASE TABLE OLD NEW',
    summary: 'change a row of a table (NEW: values by column), or a document (NEW: the whole document)',
    details: ABOUT_OLD.join('\n'),
    options: CHANGING,
    run: (call) => {
      const [old = '', values = ''] = call.words.slice(2);
      const update = { action: 'update' as const, old: rowOf('OLD', old), values: rowOf('NEW', values) };
      return change(call, [update], 'changed');
    },
  },
  {
    name: 'db row-rm',
    words: 'DATABASE TABLE OLD…',
    summary: 'delete rows of a table, or documents of a collection, all or none',
    details: ABOUT_OLD.join('\n'),
    options: { ...CHANGING, ...YES },
    run: (call) => {
      const rows = call.words.slice(2).flatMap((text) => rowsOf('OLD', text));
      return change(
        call,
        rows.map((old) => ({ action: 'delete' as const, old })),
        'deleted',
      );
    },
  },
];
