/** Rows of a table by SQL. What differs by dialect is in the folder of the engine. */
import type { Table } from '../../../databases/engine.ts';
import type { ColumnKind } from '../../../databases/imports/guesses.ts';
import {
  type Bytes,
  type FoundRows,
  isBytes,
  type RowChange,
  type RowFilter,
  type RowLanguage,
  type RowStatement,
  type RowsAsk,
  type RowValues,
  TableColumns,
} from '../../../databases/rows/row-language.ts';
import { invalidField } from '../../../platform/errors.ts';

export type Column = Table['columns'][number];
/** Binds a value, and gives its placeholder. */
export type Bind = (value: unknown) => string;
/** A column in an expression: its quoted name and its definition. */
export interface Named {
  readonly name: string;
  readonly column: Column;
}

export interface Comparison {
  readonly operator: string;
  readonly value: unknown;
  readonly bind: Bind;
}

export interface SqlRowDialect {
  /** Around a name; doubled within. */
  readonly quote: string;
  /** The placeholder of the value at this place, from 1. */
  mark(at: number): string;
  /** The value as JSON holds it exactly; its text where JSON cannot. */
  read(named: Named): string;
  /** A value as read, as an expression to store. */
  write(value: unknown, column: Column, bind: Bind): string;
  /** Whether the column has the value as read, also NULL. */
  same(named: Named, value: unknown, bind: Bind): string;
  /** Same as above, for a column of the key, by its index. */
  sameKey(named: Named, value: unknown, bind: Bind): string;
  /** A comparison with a value that a user typed. */
  compare(named: Named, comparison: Comparison): string;
  /** Whether the text of the column has that text in it, or begins with it, in any case of letters. */
  contains(named: Named, value: string, bind: Bind): string;
  startsWith(named: Named, value: string, bind: Bind): string;
  /** Whether the values of the column are bytes; null: any value may be, and `kinds` tells. */
  hasBytes(column: Column): boolean | null;
  /** The first letters of the types of all values of a row, in order: `b` are bytes. */
  kinds?(names: readonly string[]): string;
  /** A value as read, as a literal under the usual settings of a session. */
  literal(value: unknown, column: Column): string;
  /** SQL after the table for a row of defaults only. */
  readonly defaults: string;
  /** Types of columns of a new table. */
  readonly types: Readonly<Record<ColumnKind, string>>;
  /** Whether a time may have a zone. */
  readonly hasZones: boolean;
  /** SQL between the columns and the values of a row that sets all its values; default: none. */
  overriding?(columns: readonly Column[]): string;
}

const COMPARED = { eq: '=', ne: '<>', lt: '<', le: '<=', gt: '>', ge: '>=' } as const;

export function sqlRows(dialect: SqlRowDialect): RowLanguage {
  return new SqlRows(dialect);
}

class SqlRows implements RowLanguage {
  readonly #dialect: SqlRowDialect;
  readonly #known = new WeakMap<Table, TableColumns>();

  constructor(dialect: SqlRowDialect) {
    this.#dialect = dialect;
  }

  #columns(table: Table): TableColumns {
    const known = this.#known.get(table) ?? new TableColumns(table);
    this.#known.set(table, known);
    return known;
  }

  read(table: Table, { filter, sort, limit, skip, ...ask }: RowsAsk): RowStatement {
    const { columns } = table;
    assertOfTables(ask);
    const dialect = this.#dialect;
    const { bind, params } = this.#binder();
    const read = columns.map((column) => {
      const name = this.#quoted(column.name);
      const expression = dialect.read({ name, column });
      return expression === name ? name : `${expression} AS ${name}`;
    });
    const kinds = dialect.kinds?.(columns.map(({ name }) => this.#quoted(name)));
    const wanted = kinds === undefined ? read : [...read, kinds];
    const where = this.#where(table, filter, bind);
    const sorted = sort.map(({ column, descending: isDown }) => {
      const { name } = this.#columns(table).of(column, 'sort');
      return `${this.#quoted(name)}${isDown ? ' DESC' : ''}`;
    });
    const named = new Set(sort.map(({ column }) => column));
    const keys = this.keyOf(table).filter((name) => !named.has(name));
    const order = [...sorted, ...keys.map((name) => this.#quoted(name))];
    const ordered = order.length === 0 ? '' : ` ORDER BY ${order.join(', ')}`;
    const page = limit === undefined ? '' : ` LIMIT ${limit}${skip === 0 ? '' : ` OFFSET ${skip}`}`;
    const statement = `SELECT ${wanted.join(', ')} FROM ${this.#table(table)}${where}${ordered}${page}`;
    return { statement, params };
  }

  count(table: Table, { filter }: Pick<RowsAsk, 'filter'>): RowStatement {
    const { bind, params } = this.#binder();
    const where = this.#where(table, filter, bind);
    return { statement: `SELECT count(*) FROM ${this.#table(table)}${where}`, params };
  }

  present({ columns }: Table, { columns: found, rows }: FoundRows) {
    const { length } = columns;
    const bytes = columns.map((column) => this.#dialect.hasBytes(column));
    const isBinary = (kinds: unknown, at: number) => bytes[at] ?? String(kinds)[at] === 'b';
    return {
      columns: found.slice(0, length).map(({ name }, at) => ({ name, type: columns[at]?.type ?? null })),
      rows: rows.map((row) =>
        row
          .slice(0, length)
          .map((value, at) => (value !== null && isBinary(row[length], at) ? { base64: value } : value)),
      ),
    };
  }

  keyOf(table: Table): readonly string[] {
    return [...this.#columns(table).keys];
  }

  insertText(table: Table, row: readonly unknown[]): string {
    const into = `INSERT INTO ${this.#quoted(table.name)}`;
    const given = table.columns.flatMap((column, at) =>
      column.generated === true ? [] : { column, value: row[at] ?? null },
    );
    if (given.length === 0) return `${into} ${this.#dialect.defaults};`;
    const names = given.map(({ column }) => this.#quoted(column.name)).join(', ');
    const values = given.map(({ column, value }) =>
      value === null ? 'NULL' : this.#dialect.literal(value, column),
    );
    const overriding = this.#dialect.overriding?.(given.map(({ column }) => column)) ?? '';
    return `${into} (${names})${overriding} VALUES (${values.join(', ')});`;
  }

  get importTraits() {
    return { hasZones: this.#dialect.hasZones };
  }

  takesBytes(column: Column): boolean {
    return this.#dialect.hasBytes(column) ?? /^blob$/i.test(column.type ?? '');
  }

  insertRows(table: Table, names: readonly string[], rows: readonly (readonly unknown[])[]): RowStatement {
    const { bind, params } = this.#binder();
    const columns = names.map((name) => this.#columns(table).of(name, 'columns'));
    const values = rows.map(
      (row) => `(${columns.map((column, at) => this.#dialect.write(row[at], column, bind)).join(', ')})`,
    );
    const quoted = names.map((name) => this.#quoted(name)).join(', ');
    const overriding = this.#dialect.overriding?.(columns) ?? '';
    const statement = `INSERT INTO ${this.#table(table)} (${quoted})${overriding} VALUES ${values.join(', ')}`;
    return { statement, params };
  }

  createTable(table: Table, kinds: readonly ColumnKind[]): string {
    const columns = table.columns.map(
      ({ name }, at) => `${this.#quoted(name)} ${this.#dialect.types[kinds[at] ?? 'text']}`,
    );
    return `CREATE TABLE ${this.#table(table)} (${columns.join(', ')})`;
  }

  dropTable(table: Table): string {
    return `DROP TABLE ${this.#table(table)}`;
  }

  change(table: Table, change: RowChange): RowStatement {
    const { bind, params } = this.#binder();
    const { values = {}, old = {} } = change;
    assertBytes(values, 'values');
    assertBytes(old, 'old');
    const name = this.#table(table);
    if (change.action === 'insert') return { statement: this.#insert(table, values, bind), params };
    if (change.action === 'delete')
      return { statement: `DELETE FROM ${name} WHERE ${this.#asRead(table, old, bind)}`, params };
    const set = Object.entries(values).map(([key, value]) => {
      const column = this.#columns(table).of(key, 'values');
      return `${this.#quoted(key)} = ${this.#dialect.write(value, column, bind)}`;
    });
    if (set.length === 0) throw invalidField('values', 'an update needs at least one');
    const statement = `UPDATE ${name} SET ${set.join(', ')} WHERE ${this.#asRead(table, old, bind)}`;
    return { statement, params };
  }

  #insert(table: Table, values: RowValues, bind: Bind): string {
    const into = `INSERT INTO ${this.#table(table)}`;
    const names = Object.keys(values);
    if (names.length === 0) return `${into} ${this.#dialect.defaults}`;
    const written = Object.entries(values).map(([name, value]) =>
      this.#dialect.write(value, this.#columns(table).of(name, 'values'), bind),
    );
    const quoted = names.map((name) => this.#quoted(name));
    return `${into} (${quoted.join(', ')}) VALUES (${written.join(', ')})`;
  }

  /** Finds the row by its key, and only if it has all old values. */
  #asRead(table: Table, old: RowValues, bind: Bind): string {
    const columns = this.#columns(table);
    const missing = [...columns.keys].find((name) => !Object.hasOwn(old, name));
    if (missing !== undefined) throw invalidField('old', `needs the key: ${missing}`);
    const dialect = this.#dialect;
    const isKey = (name: string) => columns.keys.has(name);
    const ordered = Object.entries(old).sort(([one], [other]) => Number(isKey(other)) - Number(isKey(one)));
    const terms = ordered.map(([key, value]) => {
      const named = { name: this.#quoted(key), column: columns.of(key, 'old') };
      return isKey(key) && value !== null
        ? dialect.sameKey(named, value, bind)
        : dialect.same(named, value, bind);
    });
    return joined(terms, ' AND ');
  }

  #where(table: Table, filter: readonly RowFilter[], bind: Bind): string {
    const terms = filter.map((one) => this.#term(table, one, bind));
    return terms.length === 0 ? '' : ` WHERE ${terms.join(' AND ')}`;
  }

  #term(table: Table, { column: key, operator, value }: RowFilter, bind: Bind): string {
    const column = this.#columns(table).of(key, 'filter');
    const named = { name: this.#quoted(key), column };
    if (operator === 'is_null') return `${named.name} IS NULL`;
    if (operator === 'is_not_null') return `${named.name} IS NOT NULL`;
    if (value === undefined || value === null)
      throw invalidField('filter', `${operator} needs a value; is_null finds NULL`);
    const dialect = this.#dialect;
    if (operator === 'contains') return dialect.contains(named, textIn(value, operator), bind);
    if (operator === 'starts_with') return dialect.startsWith(named, textIn(value, operator), bind);
    return dialect.compare(named, { operator: COMPARED[operator], value, bind });
  }

  #binder() {
    const params: unknown[] = [];
    const bind: Bind = (value) => {
      const isObject = typeof value === 'object' && value !== null && !isBytes(value);
      return this.#dialect.mark(params.push(isObject ? JSON.stringify(value) : value));
    };
    return { bind, params };
  }

  #table({ schema, name }: Table): string {
    return [schema, name].flatMap((part) => (part === null ? [] : this.#quoted(part))).join('.');
  }

  #quoted(name: string): string {
    const { quote } = this.#dialect;
    return quote + name.replaceAll(quote, quote + quote) + quote;
  }
}

function assertOfTables(ask: Pick<RowsAsk, 'match' | 'after'>): void {
  for (const name of ['match', 'after'] as const)
    if (ask[name] !== undefined) throw invalidField(name, 'is only for collections of documents');
}

/** Text to search for: an empty list or a cleared field becomes the empty text, which every text contains. */
function textIn(value: unknown, operator: string): string {
  const isText = ['string', 'number', 'boolean'].includes(typeof value);
  if (isText && value !== '') return String(value);
  const need = `${operator} needs at least one character of text, or a number; without the condition all rows are found`;
  throw invalidField('filter', need);
}

/** SQLite nests at most 1,000 terms in a row, so the terms of a wide table are grouped. */
const TERMS_OF_GROUP = 200;

/** Terms of an expression, of any number; the operator must be associative. */
export function joined(terms: readonly string[], operator: string): string {
  if (terms.length <= TERMS_OF_GROUP) return terms.join(operator);
  const groups = Array.from({ length: Math.ceil(terms.length / TERMS_OF_GROUP) }, (_, at) =>
    terms.slice(at * TERMS_OF_GROUP, (at + 1) * TERMS_OF_GROUP),
  );
  return groups.map((group) => `(${group.join(operator)})`).join(operator);
}

/** The bytes of a value in hexadecimal digits. */
export function hexOf({ base64 }: Bytes): string {
  return Buffer.from(base64, 'base64').toString('hex');
}

/** Text between single quotes, which are doubled within. */
export function inQuotes(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Engines store what they can read of it, or NULL. Throws for bytes that are not base64. */
function assertBytes(values: RowValues, field: string): void {
  const wrong = Object.entries(values).find(([, value]) => isBytes(value) && !BASE64.test(value.base64));
  if (wrong !== undefined) throw invalidField(field, `${wrong[0]}: the bytes are not padded base64`);
}

/** The bytes of a value as base64, for engines that decode it themselves. Throws for other values. */
export function base64Of(value: unknown, { name }: Column): string | null {
  if (value === null) return null;
  if (isBytes(value)) return value.base64;
  throw invalidField(name, 'holds bytes: give {"base64": "…"}');
}
