/**
 * How an engine reads and changes the rows of a table, or the documents of a collection: as
 * statements with bound values, or as commands. Each engine has its own in its folder (`rows` of
 * its description).
 */
import { invalidField } from '../../platform/errors.ts';
import type { ResultColumn, Table } from '../engine.ts';
import type { ColumnKind } from '../imports/guesses.ts';
import type { ImportTraits } from '../imports/values.ts';

export const FILTER_OPERATORS = [
  ...(['eq', 'ne', 'lt', 'le', 'gt', 'ge'] as const),
  ...(['contains', 'starts_with', 'is_null', 'is_not_null'] as const),
] as const;
export type FilterOperator = (typeof FILTER_OPERATORS)[number];

/** Bytes are an object, to distinguish them from text. */
export interface Bytes {
  readonly base64: string;
}

export interface RowFilter {
  readonly column: string;
  readonly operator: FilterOperator;
  /** Missing for the two operators without a value. */
  readonly value?: unknown;
}

export interface RowsAsk {
  /** All conditions must hold. */
  readonly filter: readonly RowFilter[];
  /** The key is appended to the order, so that pages do not overlap. */
  readonly sort: readonly { readonly column: string; readonly descending?: boolean }[];
  /** Missing: all. */
  readonly limit?: number;
  readonly skip: number;
  /** A filter in the engine's own language, in addition to `filter`; only for collections. */
  readonly match?: RowValues | undefined;
  /** The key of the row before the page; only for collections in key order. */
  readonly after?: readonly unknown[] | undefined;
}

export type RowValues = Readonly<Record<string, unknown>>;

export interface RowChange {
  readonly action: 'insert' | 'update' | 'delete';
  /** The new values of an insert or update; an insert uses the default for missing columns. */
  readonly values?: RowValues;
  /** The row as it was read, for an update or delete; it has the key. */
  readonly old?: RowValues;
}

/** A statement or command; both fields as in Query. */
export interface RowStatement {
  readonly statement: string | Readonly<Record<string, unknown>>;
  readonly params: readonly unknown[];
}

export interface FoundRows {
  readonly columns: readonly ResultColumn[];
  readonly rows: readonly (readonly unknown[])[];
}

export interface RowLanguage {
  read(table: Table, ask: RowsAsk): RowStatement;
  /** Counts the filtered rows: one row with one number. */
  count(table: Table, ask: Pick<RowsAsk, 'filter' | 'match'>): RowStatement;
  /** Statements that fill up a page if read() with `after` finds too few rows; missing: none. */
  further?(table: Table, ask: RowsAsk): readonly RowStatement[];
  /** The key of a row, for `after`; null or missing: this order is paged by `skip`. */
  keyValues?(table: Table, row: readonly unknown[], ask: RowsAsk): readonly unknown[] | null;
  /** The result of read(), with bytes as objects. */
  present(table: Table, result: FoundRows): FoundRows;
  /** Changes exactly one row, or none if it has changed since it was read. */
  change(table: Table, change: RowChange): RowStatement;
  /** Columns that identify a row; empty: rows cannot be changed. */
  keyOf(table: Table): readonly string[];
  /** One INSERT that recreates a row of present(), without a line end. */
  insertText?(table: Table, row: readonly unknown[]): string;
  /** Whether each row is one column with a document; missing: rows have columns. */
  readonly documents?: DocumentLanguage;
  readonly importTraits: ImportTraits;
  /** Whether the column usually has bytes. */
  takesBytes(column: Table['columns'][number]): boolean;
  /** Stores rows of these columns. */
  insertRows(table: Table, names: readonly string[], rows: readonly (readonly unknown[])[]): RowStatement;
  /** Creates the table with columns of these types. */
  createTable(table: Table, kinds: readonly ColumnKind[]): RowStatement['statement'];
  dropTable(table: Table): RowStatement['statement'];
}

export interface DocumentLanguage {
  /** Finds the names of the fields of all documents: rows with one name. */
  names(table: Table): RowStatement;
  /** A value of a document as text of a CSV field; null: the document does not have the field. */
  textOf(value: unknown): string | null;
  /** Stores documents unchanged. */
  insert(table: Table, documents: readonly unknown[]): RowStatement;
}

/** Columns of a table, for repeated look-ups: calls with many rows may use thousands of columns. */
export class TableColumns {
  /** Columns that name a row: of the primary key, or else of a unique index without NULLs. */
  readonly keys: ReadonlySet<string>;
  readonly #table: Table;
  readonly #byName: ReadonlyMap<string, Table['columns'][number]>;

  constructor(table: Table) {
    this.#table = table;
    this.#byName = new Map(table.columns.map((column) => [column.name, column]));
    this.keys = new Set(keyColumns(table));
  }

  /** Throws `invalid_request` for an unknown column; `field`: the field of the request that names it. */
  of(name: string, field: string): Table['columns'][number] {
    const found = this.#byName.get(name);
    if (found === undefined) throw invalidField(field, `${this.#table.name} has no column ${name}`);
    return found;
  }
}

function keyColumns({ columns, indexes, type }: Table): readonly string[] {
  if (type === 'view') return [];
  const primary = columns.filter(({ primary_key: isKey }) => isKey).map(({ name }) => name);
  if (primary.length > 0) return primary;
  const required = new Set(columns.filter(({ nullable }) => !nullable).map(({ name }) => name));
  return indexes.find((one) => one.unique && one.columns.every((name) => required.has(name)))?.columns ?? [];
}

export function isBytes(value: unknown): value is Bytes {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Bytes>).base64 === 'string';
}
