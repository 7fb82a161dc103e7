/** All rows of a table as text: CSV, JSON lines or SQL, page after page. */
import type { Principal } from '../../calls/principal.ts';
import type { Table } from '../engine.ts';
import type { Egress } from '../life/egress.ts';
import type { OwnedDatabases } from '../life/owned-databases.ts';
import { isBytes, type RowLanguage } from './row-language.ts';
import type { ExportFormat } from './row-schema.ts';
import type { Rows } from './rows.ts';

export interface RowExportsDeps {
  readonly owned: OwnedDatabases;
  readonly rows: Rows;
  readonly egress: Pick<Egress, 'counted'>;
}

interface Wanted {
  readonly table: string;
  readonly schema?: string | undefined;
  readonly format: ExportFormat;
  readonly signal: AbortSignal;
}

export interface RowExport {
  readonly fileName: string;
  readonly contentType: string;
  readonly bytes: AsyncIterable<Uint8Array>;
}

type Row = readonly unknown[];

interface Written {
  readonly type: string;
  readonly head?: (table: Table) => string;
  readonly row: (table: Table, row: Row, language: RowLanguage) => string;
}

const FORMATS: Readonly<Record<ExportFormat, Written>> = {
  csv: {
    type: 'text/csv; charset=utf-8; header=present',
    head: ({ columns }) => `${columns.map(({ name }) => cell(name)).join(',')}\r\n`,
    row: (_, row) => `${row.map(cell).join(',')}\r\n`,
  },
  jsonl: { type: 'application/jsonl; charset=utf-8', row: jsonLine },
  sql: {
    type: 'application/sql; charset=utf-8',
    row: (table, row, language) => `${language.insertText?.(table, row) ?? ''}\n`,
  },
};

export class RowExports {
  readonly #deps: RowExportsDeps;

  constructor(deps: RowExportsDeps) {
    this.#deps = deps;
  }

  /** Rejects like Rows.read(), before any byte, if the first page cannot be read. */
  async start(
    principal: Principal,
    databaseId: string,
    { table: name, schema, format, signal }: Wanted,
  ): Promise<RowExport> {
    const { owned, rows, egress } = this.#deps;
    const input = schema === undefined ? { table: name } : { table: name, schema };
    const { table, language, pages } = await rows.exported(principal, databaseId, { input, signal });
    const database = await owned.findLive(principal, databaseId);
    const written = FORMATS[format];
    const rest = pages[Symbol.asyncIterator]();
    let next = await rest.next();
    async function* pieces() {
      if (written.head !== undefined) yield Buffer.from(written.head(table));
      for (; next.done !== true; next = await rest.next())
        yield Buffer.from(next.value.map((row) => written.row(table, row, language)).join(''));
    }
    return {
      fileName: `${database.name}-${table.name}.${format}`,
      contentType: written.type,
      bytes: egress.counted(databaseId, pieces()),
    };
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

/** Not by an object, which would move columns with a number as name to the front. */
function jsonLine({ columns }: Table, row: Row): string {
  const fields = columns.map(({ name }, at) => `${JSON.stringify(name)}:${JSON.stringify(row[at] ?? null)}`);
  return `{${fields.join(',')}}\n`;
}
