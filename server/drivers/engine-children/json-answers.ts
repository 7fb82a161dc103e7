/** JSON answers of children, which the main process passes on unchanged. */
import type { QueryResult, ResultColumn } from '../../databases/engine.ts';
import { JsonText } from '../../platform/json/json.ts';
import type { ChildReply } from './child-call.ts';
import type { ChildAnswer } from './tenant-child.ts';

interface Found {
  readonly columns: readonly ResultColumn[];
  /** Each as JSON. */
  readonly rows: readonly string[];
  readonly affected: number | null;
  readonly truncated: boolean;
}

/** In the child: the reply to `query`. The body has `columnsBytes` of columns, followed by the rows. */
export function queryReply({ columns, rows, affected, truncated }: Found): ChildReply {
  const before = JSON.stringify(columns);
  const head = { columnsBytes: Buffer.byteLength(before), rowCount: rows.length, affected, truncated };
  return { head, body: Buffer.from(`${before}[${rows.join(',')}]`) };
}

/**
 * In the main process: the reply as a result. Columns and rows are not checked: they go to the
 * tenant whose process wrote them. Throws for a reply that our children never send.
 */
export function queryResultOf({ head, body }: ChildAnswer): QueryResult {
  const { columnsBytes, rowCount, affected, truncated } = head;
  const isWhole = isCount(columnsBytes) && columnsBytes <= body.length && isCount(rowCount);
  if (!isWhole || typeof truncated !== 'boolean' || !(affected === null || isCount(affected)))
    throw new Error("the database's process gave no answer to a query");
  return {
    columns: new JsonText([body.subarray(0, columnsBytes)], []),
    rows: new JsonText([body.subarray(columnsBytes)], [body]),
    rowCount,
    affected,
    truncated,
  };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
