/**
 * Texts of statements in PostgreSQL's dialect: numbered placeholders, row ids that the caller assigns, and
 * one statement for many rows.
 */

const QUOTED_OR_PLACEHOLDER = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\?/g;
const INSERT = /^\s*INSERT INTO (\w+)\s*\(([^()]*)\)\s*VALUES\s*\((.*)\)\s*$/s;
const UPDATE = /^\s*UPDATE (\w+)\s+SET (.*)\sWHERE\s(.*)$/s;
/** Reads rows of an earlier commit in the batch, or has another shape. */
const NOT_BY_ROW = /\b(SELECT|RETURNING|FROM|ON CONFLICT)\b/i;

/** `sql` with its n-th `?` replaced by `of(n)`, from 1. */
function replacePlaceholders(sql: string, of: (n: number) => string): string {
  let n = 0;
  return sql.replace(QUOTED_OR_PLACEHOLDER, (match) => (match === '?' ? of(++n) : match));
}

/** `$1`, `$2`, … in the place of `?`. */
export function numbered(sql: string): string {
  return replacePlaceholders(sql, (n) => `$${n}`);
}

export interface InsertedRow {
  readonly table: string;
  /** Index of the param with the row's id; −1: the INSERT does not name it. */
  readonly idParam: number;
}

/** Columns of a plain one-row INSERT; null: another statement. */
export function insertedRow(sql: string): InsertedRow | null {
  const [, table, columns = '', values = ''] = INSERT.exec(sql) ?? [];
  if (table === undefined) return null;
  const column = columns.split(',').findIndex((name) => name.trim() === 'id');
  const before = values.split(',').slice(0, Math.max(0, column));
  return { table, idParam: column < 0 ? -1 : before.filter((value) => value.includes('?')).length };
}

/** The same INSERT with the row id as its first param. */
export function withId(sql: string): string {
  return sql.replace(/\(/, '(id, ').replace(/VALUES\s*\(/, 'VALUES (?, ');
}

/**
 * One statement that does for many rows what `sql` does for one; its params are arrays, of these
 * types, with the params of each row. Null: there is none, because `sql` is not a plain INSERT or
 * UPDATE.
 */
export function manyRows(sql: string, types: readonly string[]): string | null {
  if (types.length === 0) return null;
  const arrays = types.map((type, i) => `$${i + 1}::${type}[]`).join(', ');
  const names = types.map((_, i) => `p${i + 1}`).join(', ');
  const byRow = (part: string, from: number) => replacePlaceholders(part, (n) => `row.p${from + n}`);
  const insert = INSERT.exec(sql);
  if (insert !== null) {
    const [, table, columns, values = ''] = insert;
    if (NOT_BY_ROW.test(values)) return null;
    return (
      `INSERT INTO ${table} (${columns}) SELECT ${byRow(values, 0)} ` +
      `FROM unnest(${arrays}) WITH ORDINALITY AS row(${names}, n) ORDER BY row.n`
    );
  }
  const update = UPDATE.exec(sql);
  if (update === null) return null;
  const [, table, sets = '', condition = ''] = update;
  if (NOT_BY_ROW.test(sets) || NOT_BY_ROW.test(condition)) return null;
  const inSets = sets.match(/\?/g)?.length ?? 0;
  return (
    `UPDATE ${table} SET ${byRow(sets, 0)} FROM unnest(${arrays}) AS row(${names}) ` +
    `WHERE ${byRow(condition, inSets)}`
  );
}
