/** The tables of a database, from MariaDB's own catalogue, read on behalf of the tenant. */
import type { Table } from '../../../databases/engine.ts';

type Row = Record<string, unknown>;
type Ask = (sql: string) => Promise<Row[]>;

const TABLES = `
SELECT TABLE_NAME AS name, TABLE_TYPE AS type, TABLE_ROWS AS count, DATA_LENGTH + INDEX_LENGTH AS bytes
FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE IN ('BASE TABLE', 'VIEW')
ORDER BY TABLE_NAME LIMIT 10000`;

const COLUMNS = `
SELECT TABLE_NAME AS tab, COLUMN_NAME AS name, COLUMN_TYPE AS type, IS_NULLABLE AS nullable,
  COLUMN_DEFAULT AS def, COLUMN_KEY AS kind,
  COALESCE(GENERATION_EXPRESSION, '') <> '' AS made
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME, ORDINAL_POSITION`;

const INDEXES = `
SELECT TABLE_NAME AS tab, INDEX_NAME AS name, COLUMN_NAME AS col, NON_UNIQUE AS again
FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE()
ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX`;

const KEYS = `
SELECT TABLE_NAME AS tab, CONSTRAINT_NAME AS name, COLUMN_NAME AS col, REFERENCED_TABLE_NAME AS other,
  REFERENCED_COLUMN_NAME AS othercol
FROM information_schema.KEY_COLUMN_USAGE
WHERE TABLE_SCHEMA = DATABASE() AND REFERENCED_TABLE_NAME IS NOT NULL
ORDER BY TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION`;

/** All tables and views. MySQL databases have no schemas. */
export async function listTables(ask: Ask): Promise<Table[]> {
  const tables = await ask(TABLES);
  const [columns, indexes, keys] = [
    byTable(await ask(COLUMNS)),
    byTable(await ask(INDEXES)),
    byTable(await ask(KEYS)),
  ];
  return tables.map(({ name, type, count, bytes }) => ({
    name: String(name),
    schema: null,
    type: type === 'VIEW' ? 'view' : 'table',
    columns: (columns.get(String(name)) ?? []).map((row) => ({
      name: String(row.name),
      type: String(row.type),
      nullable: row.nullable === 'YES',
      default: row.def === null ? null : String(row.def),
      primary_key: row.kind === 'PRI',
      generated: Number(row.made) === 1,
    })),
    indexes: grouped(indexes.get(String(name))).map(([index, rows]) => ({
      name: index,
      columns: rows.map(({ col }) => String(col)),
      unique: Number(rows[0]?.again) === 0,
    })),
    foreign_keys: grouped(keys.get(String(name))).map(([, rows]) => ({
      columns: rows.map(({ col }) => String(col)),
      references: {
        table: String(rows[0]?.other),
        columns: rows.map(({ othercol }) => String(othercol)),
      },
    })),
    estimated_rows: count === null ? null : Number(count),
    size_bytes: bytes === null ? null : Number(bytes),
  }));
}

function byTable(rows: readonly Row[]): Map<string, Row[]> {
  return Map.groupBy(rows, ({ tab }) => String(tab));
}

function grouped(rows: readonly Row[] = []): [string, Row[]][] {
  return [...Map.groupBy(rows, ({ name }) => String(name))];
}
