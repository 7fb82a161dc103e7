/** Runs one statement on its own connection, for the console's query page. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { isBusy } from '../../../../libs/sqlite/index.ts';
import { systemClock } from '../../../platform/clock.ts';
import { type ChildCall, type Handler, TURN_MS } from '../../engine-children/child-call.ts';
import { queryReply } from '../../engine-children/json-answers.ts';
import { unlessHeldBack } from '../../engine-children/rows/held-back.ts';
import { sizeOf } from './child-copies.ts';
import { harmless } from './harmless-pragmas.ts';
import type { TenantConnections } from './tenant-connections.ts';

export interface QueryHead {
  readonly statement: string;
  readonly params: readonly unknown[];
  readonly readOnly: boolean;
  readonly maxRows: number;
  readonly skip?: number;
  readonly maxBytes: number;
}

const BUSY_STEP_MS = 10;
/**
 * Matches what may follow a statement. Each alternative has a unique end, to avoid backtracking on `-----`.
 */
const NOTHING_MORE = /^(?:[\s;]|--[^\n]*(?:\n|$)|\/\*(?:(?!\*\/)[\s\S])*(?:\*\/|$))*$/;

export function queryHandler(tenant: TenantConnections): Handler {
  return async (call) => {
    const head = call.head as unknown as QueryHead;
    const database = tenant.openFor('single', head.readOnly);
    tenant.counters.statements++;
    try {
      const statement = prepare(database, head.statement);
      const result = await whenFree(call, () => run(database, statement, call));
      tenant.counters.rowsReturned += result.rows.length;
      tenant.counters.rowsWritten += result.affected ?? 0;
      return queryReply(result);
    } finally {
      tenant.close(database);
    }
  };
}

/**
 * Runs statements that change one row each, in one transaction. The answer's head has `at` and `rows` of the
 * first that did not, when nothing was changed.
 */
export function changeHandler(tenant: TenantConnections): Handler {
  return async (call) => {
    const { statements } = call.head as unknown as { statements: readonly Statement[] };
    const database = tenant.openFor('own', false);
    try {
      await whenFree(call, async () => database.exec('BEGIN IMMEDIATE'));
      const refused = await changeAll(database, statements, call.signal);
      database.exec(refused === null ? 'COMMIT' : 'ROLLBACK');
      tenant.counters.statements += statements.length;
      if (refused === null) tenant.counters.rowsWritten += statements.length;
      return { head: refused ?? { at: null, rows: null } };
    } finally {
      // Rolls back what has failed.
      tenant.close(database);
    }
  };
}

/** Bytes of rows in one part of a scan. */
const PART_BYTES = 256 * 1024;
/**
 * The log grows while a snapshot is read, and no size limit counts it: the larger of this and the size of the
 * file is allowed.
 */
const LEAST_LOG_BYTES = 64 * 2 ** 20;

/**
 * All rows of one statement, in parts that are lists as JSON: one statement reads one snapshot. It fails
 * when the log grows too much meanwhile.
 */
export function scanHandler(tenant: TenantConnections, leastLogBytes = LEAST_LOG_BYTES): Handler {
  return async (call) => {
    const { statement: sql, params } = call.head as unknown as Statement;
    const database = tenant.openFor('single', true);
    tenant.counters.statements++;
    try {
      const statement = await whenFree(call, async () => prepare(database, sql));
      let [rows, bytes]: [string[], number] = [[], 0];
      const logBytes = Math.max(leastLogBytes, sizeOf(database));
      const send = async () => {
        await unlessHeldBack(tenant, logBytes, call.part({}, Buffer.from(`[${rows.join(',')}]`)));
        tenant.counters.rowsReturned += rows.length;
        [rows, bytes] = [[], 0];
      };
      let since = systemClock.monotonic();
      for (const row of statement.iterate(...params.map(bound))) {
        const text = JSON.stringify((row as unknown as unknown[]).map(shown));
        rows.push(text);
        bytes += text.length;
        if (bytes < PART_BYTES && systemClock.monotonic() - since < TURN_MS) continue;
        await (bytes < PART_BYTES ? turn() : send());
        call.signal.throwIfAborted();
        since = systemClock.monotonic();
      }
      if (rows.length > 0) await send();
      return { head: {} };
    } finally {
      tenant.close(database);
    }
  };
}

/** Names of columns up to this length in all are shown, however few bytes of rows are asked for. */
const USUAL_NAME_BYTES = 64 * 1024;

type Statement = Pick<QueryHead, 'statement' | 'params'>;

async function changeAll(database: DatabaseSync, statements: readonly Statement[], signal: AbortSignal) {
  let since = systemClock.monotonic();
  for (const [at, { statement, params }] of statements.entries()) {
    const { changes } = prepare(database, statement).run(...params.map(bound));
    if (Number(changes) !== 1) return { at, rows: Number(changes) };
    if (systemClock.monotonic() - since < TURN_MS) continue;
    await turn();
    signal.throwIfAborted();
    since = systemClock.monotonic();
  }
  return null;
}

export function prepare(database: DatabaseSync, sql: string): StatementSync {
  if (NOTHING_MORE.test(sql)) throw new Error('the statement is empty');
  const statement = database.prepare(sql, { readBigInts: true, returnArrays: true });
  // SQLite compiles only the first and would silently skip the rest.
  if (harmless(sql) === sql && !NOTHING_MORE.test(sql.slice(statement.sourceSQL.length)))
    throw new Error('more than one statement: send each in its own request');
  return statement;
}

/** Retries while another connection holds the lock: a busy statement had no effect. */
export async function whenFree<T>({ signal }: ChildCall, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isBusy(error)) throw error;
      await sleep(BUSY_STEP_MS, undefined, { signal });
    }
  }
}

async function run(database: DatabaseSync, statement: StatementSync, { head, signal }: ChildCall) {
  const { params, maxRows, maxBytes, skip = 0 } = head as unknown as QueryHead;
  const changes = database.prepare('SELECT total_changes()', { returnArrays: true });
  const before = Number((changes.get() as unknown as number[])[0]);
  const columns = statement.columns().map(({ name, type }) => ({ name, type }));
  const nameBytes = Buffer.byteLength(JSON.stringify(columns));
  if (nameBytes > Math.max(maxBytes, USUAL_NAME_BYTES))
    throw new Error('the names of the columns are too long to be shown');
  const rows: string[] = [];
  let bytes = 0;
  let truncated = false;
  let toSkip = skip;
  let since = systemClock.monotonic();
  for (const row of statement.iterate(...params.map(bound))) {
    const values = row as unknown as unknown[];
    if (toSkip > 0) toSkip--;
    else {
      // Oversized rows are not converted to text.
      const isTooLong = rows.length === maxRows || bytes + leastLength(values) > maxBytes;
      const text = isTooLong ? '' : JSON.stringify(values.map(shown));
      truncated = isTooLong || bytes + text.length > maxBytes;
      if (truncated) break;
      rows.push(text);
      bytes += Buffer.byteLength(text) + 1;
    }
    if (systemClock.monotonic() - since < TURN_MS) continue;
    await turn();
    signal.throwIfAborted();
    since = systemClock.monotonic();
  }
  const changed = Number((changes.get() as unknown as number[])[0]) - before;
  const affected = columns.length === 0 || changed > 0 ? changed : null;
  return { columns, rows, affected, truncated };
}

/** Converts JSON values to SQLite's types. */
export function bound(value: unknown) {
  if (typeof value === 'boolean') return Number(value);
  // A column without a type would keep 5 as 5.0.
  if (Number.isSafeInteger(value)) return BigInt(value as number);
  if (value === null || typeof value === 'number' || typeof value === 'string') return value;
  if (typeof value === 'object' && 'base64' in value) return Buffer.from(String(value.base64), 'base64');
  throw new Error('params: each must be a string, a number, true, false, null or {"base64": "…"}');
}

function leastLength(values: readonly unknown[]): number {
  const lengths = values.map((value) =>
    typeof value === 'string' || value instanceof Uint8Array ? value.length : 1,
  );
  return lengths.reduce((sum, length) => sum + length, 0);
}

/** A value as JSON; values that JSON cannot hold are text, bytes are base64. */
function shown(value: unknown): unknown {
  if (typeof value === 'bigint') {
    return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  }
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  return value;
}
