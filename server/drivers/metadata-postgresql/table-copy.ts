/**
 * Copies all rows of the metadata between the engines, which have the same tables and columns.
 * Recovery points contain a copy in SQLite's format, with either engine.
 */
import type Database from 'better-sqlite3';
import type pg from 'pg';
import type { SqlValue } from '../../metadata/metadata.ts';
import { toBound } from '../metadata-sqlite/integers.ts';
import { toSent } from './connections.ts';

/** Rows read and written at a time: some hold small objects. */
const STEP = 500;
/** Tables with our own triggers in PostgreSQL. */
const TRIGGERED = ['accounts', 'ledger_transfers'];

export interface CopiedTable {
  readonly name: string;
  readonly columns: readonly string[];
  readonly rows: number;
}

interface Table {
  readonly name: string;
  readonly columns: readonly string[];
}

/**
 * Tables in an order in which each follows those that it references. `migrations` is omitted: each
 * engine has its own.
 */
export function tablesOf(sqlite: Database.Database): Table[] {
  const names = sqlite
    .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`)
    .pluck()
    .all() as string[];
  const sorted = new Set<string>();
  const visit = (name: string) => {
    const references = sqlite.pragma(`foreign_key_list(${name})`) as { table: string }[];
    for (const { table } of references) if (table !== name && !sorted.has(table)) visit(table);
    sorted.add(name);
  };
  for (const name of names) visit(name);
  sorted.delete('migrations');
  return [...sorted].map((name) => {
    const columns = sqlite.pragma(`table_info(${name})`) as { name: string }[];
    return { name, columns: columns.map((column) => column.name) };
  });
}

/**
 * Fills `sqlite`, which has the schema and no cloud's rows, from `client`'s open transaction.
 * Rejects with the drivers' errors.
 */
export async function copyToSqlite(client: pg.Client, sqlite: Database.Database): Promise<CopiedTable[]> {
  const triggers = sqlite.prepare(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`).all() as {
    name: string;
    sql: string;
  }[];
  for (const { name } of triggers) sqlite.exec(`DROP TRIGGER ${name}`);
  const copied: CopiedTable[] = [];
  for (const { name, columns } of tablesOf(sqlite)) {
    sqlite.exec(`DELETE FROM ${name}`);
    const insert = sqlite.prepare(
      `INSERT INTO ${name} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    );
    const insertAll = sqlite.transaction((rows: readonly SqlValue[][]) => {
      for (const row of rows) insert.run(row.map(toBound));
    });
    await client.query(`DECLARE copied NO SCROLL CURSOR FOR SELECT ${columns.join(', ')} FROM ${name}`);
    let count = 0;
    for (;;) {
      const { rows } = await client.query<SqlValue[]>({
        text: `FETCH ${STEP} FROM copied`,
        rowMode: 'array',
      });
      if (rows.length === 0) break;
      insertAll(rows);
      count += rows.length;
    }
    await client.query('CLOSE copied');
    copied.push({ name, columns, rows: count });
  }
  for (const { sql } of triggers) sqlite.exec(sql);
  const [dangling] = sqlite.prepare('PRAGMA foreign_key_check').all();
  if (dangling !== undefined) throw new Error(`a dangling reference: ${JSON.stringify(dangling)}`);
  return copied;
}

/**
 * Fills the database of `client`, which has the schema and no cloud's rows, within its open
 * transaction. `sqlite`: a reader. Rejects with a one-line Error if a text has U+0000, which
 * PostgreSQL does not support, and with the drivers' errors.
 */
export async function copyToPostgresql(sqlite: Database.Database, client: pg.Client): Promise<CopiedTable[]> {
  // Rows are copied unchanged, billing accounts included, over a ledger left by an earlier move.
  for (const table of TRIGGERED) await client.query(`ALTER TABLE ${table} DISABLE TRIGGER USER`);
  const copied: CopiedTable[] = [];
  const tables = tablesOf(sqlite);
  for (const { name, columns } of tables) assertNoNul(sqlite, name, columns);
  for (const { name } of [...tables].reverse()) await client.query(`DELETE FROM ${name}`);
  for (const { name, columns } of tables) {
    const types = await typesOf(client, name, columns);
    const sql =
      `INSERT INTO ${name} (${columns.join(', ')}) ` +
      `SELECT * FROM unnest(${types.map((type, i) => `$${i + 1}::${type}[]`).join(', ')})`;
    const select = sqlite
      .prepare(`SELECT ${columns.join(', ')} FROM ${name}`)
      .raw()
      .safeIntegers();
    let count = 0;
    let rows: SqlValue[][] = [];
    const flush = async () => {
      if (rows.length === 0) return;
      count += rows.length;
      const values = columns.map((_, i) => rows.map((row) => toSent(row[i] as SqlValue)));
      rows = [];
      await client.query({ text: sql, values });
    };
    for (const row of select.iterate() as IterableIterator<SqlValue[]>) {
      rows.push(row);
      if (rows.length === STEP) await flush();
    }
    await flush();
    copied.push({ name, columns, rows: count });
  }
  for (const table of TRIGGERED) await client.query(`ALTER TABLE ${table} ENABLE TRIGGER USER`);
  const { rows: sequences } = await client.query<{ name: string }>(
    `SELECT sequencename AS name FROM pg_sequences WHERE schemaname = current_schema()`,
  );
  for (const { name } of sequences) {
    const table = name.replace(/_id_seq$/, '');
    await client.query(`SELECT setval('${name}', (SELECT coalesce(max(id), 0) + 1 FROM ${table}), false)`);
  }
  return copied;
}

async function typesOf(client: pg.Client, table: string, columns: readonly string[]): Promise<string[]> {
  const { rows } = await client.query<{ name: string; type: string }>(
    `SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
     WHERE attrelid = $1::regclass AND attnum > 0`,
    [table],
  );
  const types = new Map(rows.map(({ name, type }) => [name, type]));
  return columns.map((column) => {
    const type = types.get(column);
    if (type === undefined) throw new Error(`PostgreSQL's table ${table} has no column ${column}`);
    return type;
  });
}

function assertNoNul(sqlite: Database.Database, table: string, columns: readonly string[]): void {
  const has = columns.map((column) => `typeof(${column}) = 'text' AND instr(${column}, char(0)) > 0`);
  const row = sqlite.prepare(`SELECT 1 FROM ${table} WHERE ${has.join(' OR ')} LIMIT 1`).get();
  if (row === undefined) return;
  throw new Error(
    `a text in ${table} has a NUL character, which PostgreSQL cannot hold: change or delete it first`,
  );
}
