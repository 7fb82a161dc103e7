/** All rows of a table as text, in one snapshot: CSV, JSON lines or SQL. */
import type { Principal } from '../../calls/principal.ts';
import { invalidField } from '../../platform/errors.ts';
import type { Table } from '../engine.ts';
import type { Egress } from '../life/egress.ts';
import type { OwnedDatabases } from '../life/owned-databases.ts';
import { assertReadable, type DatabaseTurns } from '../life/states.ts';
import { isBytes, type RowLanguage } from './row-language.ts';
import type { ExportFormat } from './row-schema.ts';
import type { Rows } from './rows.ts';

export interface RowExportsDeps {
  readonly owned: OwnedDatabases;
  readonly rows: Rows;
  readonly turns: Pick<DatabaseTurns, 'during'>;
  readonly egress: Pick<Egress, 'count'>;
}

interface Wanted {
  readonly table: string;
  readonly schema?: string | undefined;
  readonly format: ExportFormat;
  readonly signal: AbortSignal;
  /** Called before the first bytes; returns their receiver. */
  readonly open: (about: RowExport) => (bytes: Uint8Array) => Promise<void>;
}

export interface RowExport {
  readonly fileName: string;
  readonly contentType: string;
}

type Row = readonly unknown[];

interface About {
  readonly table: Table;
  readonly language: RowLanguage;
  readonly names: readonly string[];
  readonly known: ReadonlySet<string>;
}

interface Written {
  readonly type: string;
  readonly head?: (names: readonly string[]) => string;
  readonly row: (row: Row, about: About) => string;
}

const FORMATS: Readonly<Record<ExportFormat, Written>> = {
  csv: {
    type: 'text/csv; charset=utf-8; header=present',
    head: (names) => `${names.map(cell).join(',')}\r\n`,
    row: (row, about) => `${cellsOf(row, about).join(',')}\r\n`,
  },
  jsonl: { type: 'application/jsonl; charset=utf-8', row: jsonLine },
  sql: {
    type: 'application/sql; charset=utf-8',
    row: (row, { table, language }) => `${language.insertText?.(table, row) ?? ''}\n`,
  },
};

export class RowExports {
  readonly #deps: RowExportsDeps;

  constructor(deps: RowExportsDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when the last bytes have been taken. Throws the errors of Queries.scan(), and when the database
   * is deleted meanwhile; if `open` was called by then, its receiver got only a part.
   */
  async send(
    principal: Principal,
    databaseId: string,
    { table: name, schema, format, signal, open }: Wanted,
  ): Promise<void> {
    const { owned, rows, turns, egress } = this.#deps;
    const database = await owned.findLive(principal, databaseId);
    assertReadable(database);
    const input = schema === undefined ? { table: name } : { table: name, schema };
    const work = async (either: AbortSignal) => {
      const found = await rows.exported(principal, databaseId, { input, signal: either });
      const { table, language } = found;
      const { type: contentType, head, row: written } = FORMATS[format];
      if (format === 'sql' && language.insertText === undefined)
        throw invalidField(
          'format',
          'sql is not supported for collections: use jsonl, or a dump of the database',
        );
      const names = head === undefined ? [] : await found.names();
      const about: About = { table, language, names, known: new Set(names) };
      let take: ReturnType<Wanted['open']> | null = null;
      const send = async (text: string) => {
        if (take === null) {
          take = open({ fileName: `${database.name}-${table.name}.${format}`, contentType });
          text = `${head?.(names) ?? ''}${text}`;
        }
        const bytes = Buffer.from(text);
        egress.count(databaseId, bytes.length);
        await take(bytes);
        either.throwIfAborted();
      };
      const onRows = (page: readonly Row[]) => send(page.map((row) => written(row, about)).join(''));
      await found.rows(onRows, either);
      if (take === null) await send('');
    };
    await turns.during([databaseId], work, signal);
  }
}

const QUOTED = /[",\r\n]|^$|^\s|\s$/;

/** RFC 4180. NULL is an empty field, and empty text two quotes. Bytes are `\\x` and hexadecimal digits. */
function cell(value: unknown): string {
  if (value === null) return '';
  if (isBytes(value)) return `\\x${Buffer.from(value.base64, 'base64').toString('hex')}`;
  const text = String(value);
  return QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The fields of a document in the order of the names. Throws if a document has new fields. */
function cellsOf(row: Row, { language: { documents }, names, known }: About): readonly string[] {
  if (documents === undefined) return row.map(cell);
  const document = row[0] as Readonly<Record<string, unknown>>;
  const other = Object.keys(document).find((name) => !known.has(name));
  if (other !== undefined) throw new Error(`the field ${other} was added while the documents were exported`);
  return names.map((name) => cell(Object.hasOwn(document, name) ? documents.textOf(document[name]) : null));
}

/** Not built as an object, which would move columns with numeric names to the front. */
function jsonLine(row: Row, { table: { columns }, language }: About): string {
  if (language.documents !== undefined) return `${JSON.stringify(row[0])}\n`;
  const fields = columns.map(({ name }, at) => `${JSON.stringify(name)}:${JSON.stringify(row[at] ?? null)}`);
  return `{${fields.join(',')}}\n`;
}
