/** The tables of a database, from PostgreSQL's own catalogue, read on behalf of the tenant. */
import type { ClientBase, QueryResultRow } from 'pg';
import type { Table } from '../../../databases/engine.ts';

/** Excludes objects of extensions and of PostgreSQL. */
const TABLES = `
SELECT c.oid::int8 AS id, n.nspname AS schema, c.relname AS name,
  c.relkind IN ('v', 'm') AS is_view, CASE WHEN c.reltuples < 0 THEN NULL ELSE c.reltuples::int8 END AS rows,
  CASE WHEN c.relkind = 'v' THEN NULL ELSE pg_total_relation_size(c.oid) END AS bytes
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND n.nspname !~ '^pg_(toast|temp)' AND NOT EXISTS
    (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY n.nspname, c.relname LIMIT 10000`;

const COLUMNS = `
SELECT a.attrelid::int8 AS id, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
  NOT a.attnotnull AS nullable, pg_get_expr(d.adbin, d.adrelid) AS "default",
  EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY(i.indkey))
    AS primary_key
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum`;

const INDEXES = `
SELECT i.indrelid::int8 AS id, c.relname AS name, i.indisunique AS unique,
  ARRAY(SELECT pg_get_indexdef(i.indexrelid, k, true) FROM generate_series(1, i.indnkeyatts) k) AS columns
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = ANY($1::oid[]) ORDER BY i.indrelid, c.relname`;

const KEYS = `
SELECT k.conrelid::int8 AS id, k.confrelid::regclass::text AS table,
  ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY u(n, o)
    JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.n ORDER BY u.o) AS own,
  ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY u(n, o)
    JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.n ORDER BY u.o) AS other
FROM pg_constraint k WHERE k.contype = 'f' AND k.conrelid = ANY($1::oid[]) ORDER BY k.conname`;

const TYPES = `
SELECT format_type(o, t) AS type FROM unnest($1::oid[], $2::int4[]) WITH ORDINALITY u(o, t, n) ORDER BY n`;

/** All tables and views. Leaves `search_path` at pg_catalog, so that no tenant's object is resolved. */
export async function listTables(client: ClientBase): Promise<Table[]> {
  await client.query('SET search_path = pg_catalog');
  const { rows: tables } = await client.query(TABLES);
  const ids = tables.map(({ id }) => id);
  const ask = async <T extends QueryResultRow>(sql: string) => {
    const { rows } = await client.query<T & OfTable>(sql, [ids]);
    return Map.groupBy(rows, ({ id }) => id);
  };
  const columns = await ask<Table['columns'][number]>(COLUMNS);
  const indexes = await ask<Table['indexes'][number]>(INDEXES);
  const keys = await ask<ForeignKey>(KEYS);
  return tables.map(({ id, schema, name, is_view, rows, bytes }) => ({
    name,
    schema,
    type: is_view ? 'view' : 'table',
    columns: (columns.get(id) ?? []).map(({ id: _, ...column }) => column),
    indexes: (indexes.get(id) ?? []).map(({ id: _, ...index }) => index),
    foreign_keys: (keys.get(id) ?? []).map(({ own, table, other }) => ({
      columns: own,
      references: { table, columns: other },
    })),
    estimated_rows: rows === null ? null : Number(rows),
    size_bytes: bytes === null ? null : Number(bytes),
  }));
}

/** Names of types, as SQL has them. */
export async function typeNames(
  client: ClientBase,
  types: readonly { readonly typeId: number; readonly typeModifier: number }[],
): Promise<string[]> {
  const [ids, modifiers] = [types.map(({ typeId }) => typeId), types.map(({ typeModifier }) => typeModifier)];
  const { rows } = await client.query(TYPES, [ids, modifiers]);
  return rows.map(({ type }) => String(type));
}

/** Irrevocably read-only from here on, because a snapshot was taken. */
export async function beginReading(client: ClientBase): Promise<void> {
  await client.query('BEGIN READ ONLY; SELECT 1');
}

interface OfTable {
  readonly id: string;
}

interface ForeignKey {
  readonly own: string[];
  readonly table: string;
  readonly other: string[];
}

/** Row count of each table of the connected database, by its name in SQL. Runs no code of a tenant. */
export async function rowCounts(client: ClientBase): Promise<Map<string, string>> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT format('%I.%I', n.nspname, c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind = 'r' AND n.nspname !~ '^(pg_|information_schema$)'`,
  );
  const counts = new Map<string, string>();
  for (const { name } of rows) {
    const counted = await client.query(`SELECT count(*) AS n FROM ONLY ${name}`);
    counts.set(name, String(counted.rows[0]?.n));
  }
  return counts;
}
