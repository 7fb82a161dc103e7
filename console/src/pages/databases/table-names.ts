/** Names of tables, on the page and in statements. */
import type { Database, DatabaseTable } from '../../../../sdk/index.ts';

/** `sales.orders`; the schema that is looked in by itself is left out. */
export function nameOf({ schema, name }: DatabaseTable): string {
  return schema === null || schema === 'public' ? name : `${schema}.${name}`;
}

interface Page {
  readonly limit: number;
  readonly skip?: number;
}

/** Reads rows of a table, in the order of its primary key, or all that one page has. */
export function selectOf(
  engine: Database['engine'],
  table: DatabaseTable,
  { limit, skip = 0 }: Page,
): string {
  if (engine === 'mongodb') {
    const skipped = skip === 0 ? '' : `"skip": ${skip}, `;
    return `{ "find": ${JSON.stringify(table.name)}, "filter": {}, "sort": { "_id": 1 }, ${skipped}"limit": ${limit} }`;
  }
  const mark = engine === 'mysql' ? '`' : '"';
  const quote = (name: string) => mark + name.replaceAll(mark, mark + mark) + mark;
  const name = [table.schema, table.name].filter((part) => part !== null).map(quote);
  const keys = table.columns.filter((column) => column.primary_key).map((column) => quote(column.name));
  const order = keys.length === 0 ? '' : ` ORDER BY ${keys.join(', ')}`;
  return `SELECT * FROM ${name.join('.')}${order} LIMIT ${limit}${skip === 0 ? '' : ` OFFSET ${skip}`}`;
}
