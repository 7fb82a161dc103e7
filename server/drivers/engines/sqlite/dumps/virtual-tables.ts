/**
 * Virtual tables in SQL text. `.dump` of sqlite3 and `iterdump` of Python write them as rows of the schema,
 * with the tables in which they keep their content (their parts); other programs write CREATE VIRTUAL TABLE.
 */
import type { DatabaseSync } from 'node:sqlite';
import { NAME, unquoted } from './tokens.ts';

const SCHEMA_ROW =
  /^\s*INSERT\s+INTO\s+["'\x60[]?sqlite_(?:schema|master)["'\x60\]]?\s*\(\s*type\s*,\s*name\s*,\s*tbl_name\s*,\s*rootpage\s*,\s*sql\s*\)\s*VALUES\s*\(\s*'table'\s*,\s*'[^']*(?:''[^']*)*'\s*,\s*'[^']*(?:''[^']*)*'\s*,\s*0\s*,\s*'(CREATE\s+VIRTUAL\s[^']*(?:''[^']*)*)'\s*\)\s*;?\s*$/i;
const CREATE = new RegExp(
  String.raw`^\s*CREATE\s+VIRTUAL\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:main\s*\.\s*)?${NAME}\s+USING\s+${NAME}`,
  'i',
);
const CREATE_TABLE = new RegExp(
  String.raw`^\s*CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:main\s*\.\s*)?${NAME}`,
  'i',
);
const INSERT = new RegExp(
  String.raw`^\s*(?:INSERT|REPLACE)\s+(?:OR\s+\w+\s+)?INTO\s+(?:main\s*\.\s*)?${NAME}(?:\s*\(\s*${NAME})?`,
  'i',
);

/** A statement that creates a virtual table. */
export interface VirtualTable {
  readonly name: string;
  readonly module: string;
  readonly sql: string;
}

/** undefined: the statement creates none. */
export function virtualTableOf(text: string): VirtualTable | undefined {
  const sql = SCHEMA_ROW.exec(text)?.[1]?.replaceAll("''", "'") ?? text;
  const [, name, module] = CREATE.exec(sql) ?? [];
  if (name === undefined || module === undefined) return undefined;
  return { name: unquoted(name), module: module.replace(/^\W|\W$/g, ''), sql };
}

/** Whether the text writes it as a row of the schema. */
export const isSchemaRow = (text: string): boolean => SCHEMA_ROW.test(text);

/** The table that a CREATE TABLE is for; undefined: it is another statement. */
export function createdTable(text: string): string | undefined {
  const name = CREATE_TABLE.exec(text)?.[1];
  return name === undefined ? undefined : unquoted(name);
}

interface Insert {
  readonly table: string;
  /** It gives a command to a full-text table: the first column has the name of the table. */
  readonly isCommand: boolean;
}

export function insertOf(text: string): Insert | undefined {
  const [, name, first] = INSERT.exec(text) ?? [];
  if (name === undefined) return undefined;
  const table = unquoted(name);
  return { table, isCommand: first !== undefined && unquoted(first) === table };
}

/** The same INSERT, for a row that a new virtual table has already. */
export const asReplace = (text: string): string =>
  text.replace(/^(\s*)INSERT\s+(?:OR\s+\w+\s+)?INTO\b/i, '$1INSERT OR REPLACE INTO');

/** Names of parts, with the name of their virtual table; both in lower case. */
export function partsOf(database: DatabaseSync): ReadonlyMap<string, string> {
  const listed = database
    .prepare(
      "SELECT lower(name) AS name, type FROM pragma_table_list WHERE schema = 'main' AND type IN ('shadow', 'virtual')",
    )
    .all();
  const named = (type: string) => listed.filter((one) => one.type === type).map(({ name }) => String(name));
  const tables = named('virtual').sort((a, b) => b.length - a.length);
  return new Map(
    named('shadow').map((part) => [part, tables.find((table) => part.startsWith(`${table}_`)) ?? '']),
  );
}
