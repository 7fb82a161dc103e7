/** One statement of which only so many rows are taken, and what MariaDB's values are as JSON. */
import type { Connection, FieldPacket } from 'mysql2';
import { QueryFailed } from '../../databases/engine.ts';

export interface Fetched {
  readonly fields: readonly FieldPacket[];
  readonly rows: readonly (readonly unknown[])[];
  readonly affected: number | null;
  readonly truncated: boolean;
}

interface Wanted {
  readonly text: string;
  readonly params: readonly unknown[];
  readonly maxRows: number;
  readonly maxBytes: number;
}

interface ChangedRows {
  readonly affectedRows: number;
}

/** What a driver's query is, as far as it matters here. */
interface Under {
  on(event: 'fields', listener: (fields: FieldPacket[] | undefined) => void): Under;
  on(event: 'result', listener: (row: unknown[] | ChangedRows) => void): Under;
  on(event: 'error', listener: (error: Error) => void): Under;
  on(event: 'end', listener: () => void): Under;
}

const CHANGES = /^\s*(?:INSERT|UPDATE|DELETE|REPLACE|LOAD)\b/i;

/** After a truncated one the connection is of no use any more. */
export function fetchLimited(driver: Connection, wanted: Wanted): Promise<Fetched> {
  const { promise, resolve, reject } = Promise.withResolvers<Fetched>();
  let fields: readonly FieldPacket[] = [];
  const rows: unknown[][] = [];
  let bytes = 0;
  let affected: number | null = null;
  const end = (truncated: boolean) => resolve({ fields, rows, affected, truncated });
  const options = { sql: wanted.text, values: wanted.params.map(asParameter), rowsAsArray: true };
  const isPlain = wanted.params.length === 0;
  const under = (isPlain ? driver.query(options) : driver.execute(options)) as unknown as Under;
  // The query itself does not hear of the end of its connection.
  driver.once('error', reject);
  under
    .on('fields', (found) => {
      fields = found ?? [];
    })
    .on('result', (row) => {
      if (!Array.isArray(row)) {
        if (CHANGES.test(wanted.text)) affected = row.affectedRows;
        return;
      }
      const values = row.map(asJson);
      bytes += Buffer.byteLength(JSON.stringify(values));
      if (rows.length < wanted.maxRows && bytes <= wanted.maxBytes) rows.push(values);
      else end(true);
    })
    .on('error', reject)
    .on('end', () => end(false));
  return promise;
}

export interface DatabaseError extends Error {
  readonly errno: number;
  readonly sqlState: string;
  readonly sqlMessage: string;
}

export function isDatabaseError(error: unknown): error is DatabaseError {
  return typeof (error as { sqlState?: unknown } | null)?.sqlState === 'string';
}

export function asQueryFailed({ sqlMessage, errno }: DatabaseError, statement: string): QueryFailed {
  return new QueryFailed(sqlMessage, String(errno), { position: positionIn(statement, sqlMessage) });
}

/** Syntax errors quote the rest of the statement from the wrong word on, and its line. */
function positionIn(statement: string, message: string): number | null {
  const [, rest, line] = /near '([\s\S]*)' at line (\d+)$/.exec(message) ?? [];
  if (rest === undefined || rest === '') return null;
  const lines = statement.split('\n');
  const before = lines.slice(0, Number(line) - 1).join('\n').length;
  const at = statement.indexOf(rest, before);
  return at < 0 ? null : [...statement.slice(0, at)].length + 1;
}

/** What is no plain value goes as JSON. */
function asParameter(value: unknown): string | number | boolean | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  return JSON.stringify(value);
}

/** Dates and integers beyond 2^53 come as text already. */
function asJson(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return value.toString('base64');
  return typeof value === 'bigint' ? value.toString() : value;
}
