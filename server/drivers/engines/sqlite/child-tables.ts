/** Lists tables and views of a file with columns, indexes and keys. */
import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import type { Table } from '../../../databases/engine.ts';
import type { Handler } from '../../engine-children/child-call.ts';
import type { TenantConnections } from './tenant-connections.ts';
import { numberOf } from './tenant-file.ts';

/** Rows are counted up to this number. */
const MAX_COUNT = 10_000;
/** In larger files, page counts per table are not added up. */
const MAX_PAGES = 4096;

type Row = Record<string, unknown>;

/** The answer's body is JSON: a list of Table. */
export function tablesHandler(tenant: TenantConnections): Handler {
  return async ({ signal }) => {
    const database = tenant.openFor('single', true);
    try {
      const sizes = tableSizes(database);
      const tables: Table[] = [];
      for (const found of rowsOf(database, TABLES)) {
        tables.push(describe(database, found, sizes));
        await turn();
        signal.throwIfAborted();
      }
      return { head: {}, body: Buffer.from(JSON.stringify(tables)) };
    } finally {
      tenant.close(database);
    }
  };
}

const TABLES = `SELECT name, type FROM pragma_table_list
  WHERE schema = 'main' AND type <> 'shadow' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name`;
const COLUMNS =
  'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?) WHERE hidden <> 1';
const INDEXES = 'SELECT name, "unique" FROM pragma_index_list(?) ORDER BY name';
const INDEX_COLUMNS = 'SELECT name FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno';
const FOREIGN_KEYS = 'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq';
const SIZES = 'SELECT name, sum(pgsize) AS bytes FROM dbstat GROUP BY name';

function rowsOf(database: DatabaseSync, sql: string, ...params: string[]): Row[] {
  return database.prepare(sql).all(...params) as Row[];
}

function tableSizes(database: DatabaseSync): ReadonlyMap<string, number> {
  if (numberOf(database, 'PRAGMA page_count') > MAX_PAGES) return new Map();
  return new Map(rowsOf(database, SIZES).map(({ name, bytes }) => [String(name), Number(bytes)]));
}

function describe(database: DatabaseSync, found: Row, sizes: ReadonlyMap<string, number>): Table {
  const name = String(found.name);
  const isView = found.type === 'view';
  return {
    name,
    schema: null,
    type: isView ? 'view' : 'table',
    columns: columnsOf(database, name),
    indexes: rowsOf(database, INDEXES, name).map((index) => ({
      name: String(index.name),
      columns: rowsOf(database, INDEX_COLUMNS, String(index.name)).map(
        (column) => textOrNull(column.name) ?? '(expression)',
      ),
      unique: index.unique === 1,
    })),
    foreign_keys: foreignKeysOf(database, name),
    estimated_rows: isView ? null : countedRows(database, name),
    size_bytes: sizes.get(name) ?? null,
  };
}

/** Empty for a broken view or virtual table. */
function columnsOf(database: DatabaseSync, name: string): Table['columns'] {
  try {
    return rowsOf(database, COLUMNS, name).map((column) => ({
      name: String(column.name),
      type: textOrNull(column.type) || null,
      nullable: column.notnull === 0,
      default: textOrNull(column.dflt_value),
      primary_key: column.pk !== 0,
      // 1: virtual tables; 2 and 3: `GENERATED ALWAYS AS`.
      generated: column.hidden !== 0,
    }));
  } catch {
    return [];
  }
}

function foreignKeysOf(database: DatabaseSync, name: string): Table['foreign_keys'] {
  const keys = Map.groupBy(rowsOf(database, FOREIGN_KEYS, name), ({ id }) => id);
  return [...keys.values()].map((parts) => ({
    columns: parts.map((part) => String(part.from)),
    references: {
      table: String(parts[0]?.table),
      columns: parts.flatMap((part) => textOrNull(part.to) ?? []),
    },
  }));
}

/** Exact up to MAX_COUNT; null above. */
function countedRows(database: DatabaseSync, name: string): number | null {
  const quoted = `"${name.replaceAll('"', '""')}"`;
  try {
    const rows = numberOf(database, `SELECT count(*) FROM (SELECT 1 FROM ${quoted} LIMIT ${MAX_COUNT + 1})`);
    return rows > MAX_COUNT ? null : rows;
  } catch {
    return null;
  }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
