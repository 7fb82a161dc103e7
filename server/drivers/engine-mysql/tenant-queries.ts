/** Statements that we run for a tenant: in the tenant's name, few rows, and not for long. */
import type { Connection } from 'mysql2';
import mysql from 'mysql2';
import {
  type EngineDatabase,
  type Query,
  QueryFailed,
  type QueryResult,
  type Table,
} from '../../databases/engine.ts';
import { AppError, hostDiskFull } from '../../platform/errors.ts';
import { connectionEnded, diskFull, timedOut } from '../managed-server/server-engine.ts';
import * as contents from './contents-store.ts';
import { asQueryFailed, type Fetched, fetchLimited, isDatabaseError } from './limited-query.ts';
import type { MysqlLinks } from './mysql-links.ts';
import type * as store from './mysql-store.ts';
import * as sessions from './sessions-store.ts';
import { listTables } from './tables-store.ts';

export interface TenantQueriesDeps {
  readonly links: MysqlLinks;
  /** The server is the operator's: tenants could come as the users by which we run their statements. */
  readonly isGuest: boolean;
  readonly usersOf: (database: string) => store.Users;
  /** The watchdog keeps tenants from writing meanwhile. */
  readonly isDiskLow: () => boolean;
}

const TABLES_MS = 10_000;
/** Between the proper end of a statement's time and the end of its session. */
const PATIENCE_MS = 1000;
/** Out of time, killed, its session killed. */
const STOPPED = [1969, 1317, 1927, 1928, 3024];
const FULL = [1021, 1114];
/** The server only reads now. */
const HELD = '1290';
const WRONG_PASSWORD = 1045;
const MAKES_ROUTINE = /\bCREATE\b[\s\S]*\b(?:PROCEDURE|FUNCTION|PACKAGE)\b/i;
/** A statement that looks; what it calls may do no more, for its user and its transaction only read. */
const LOOKS = /^(?:SELECT|WITH|SHOW|DESCRIBE|DESC|EXPLAIN|ANALYZE|VALUES|TABLE|HELP|CHECKSUM|\()/i;
const BLANK = /^(?:\s+|--[^\n]*(?:\n|$)|#[^\n]*(?:\n|$)|\/\*(?!M?!)[\s\S]*?\*\/)+/;

interface Bounds {
  readonly user: string;
  readonly database: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** What a tenant wrote, to find the place of an error in it. */
  readonly statement?: string;
}

export class TenantQueries {
  readonly #deps: TenantQueriesDeps;

  constructor(deps: TenantQueriesDeps) {
    this.#deps = deps;
  }

  async run(database: EngineDatabase, query: Query): Promise<QueryResult> {
    const { links, isGuest, usersOf, isDiskLow } = this.#deps;
    const { params, readOnly, maxRows, maxBytes, signal } = query;
    const users = usersOf(database.database);
    const text = String(query.statement);
    // A block of its own could end the transaction that only reads.
    if (readOnly && !LOOKS.test(text.replace(BLANK, '')))
      throw new QueryFailed('Cannot execute statement in a READ ONLY transaction', '1792');
    const timeoutMs = Math.min(query.timeoutMs, database.limits.statementMs);
    const user = readOnly ? users.reader : users.writer;
    const fetched = await this.#bounded(
      { user, database: database.database, timeoutMs, signal, statement: text },
      async (driver) => {
        if (readOnly) await ask(driver, 'START TRANSACTION READ ONLY');
        return fetchLimited(driver, { text, params, maxRows, maxBytes });
      },
    )
      .catch((error) => {
        const isHeld = (error as Partial<QueryFailed>).engineCode === HELD && !isGuest;
        throw isHeld && isDiskLow() ? hostDiskFull(error) : error;
      })
      .finally(() => (isGuest && !readOnly ? links.putBackPassword(user) : null));
    if (!readOnly && MAKES_ROUTINE.test(text))
      await links.asAdmin((admin) => contents.giveRoutines(admin, users));
    return asResult(fetched);
  }

  tables({ database }: EngineDatabase, signal: AbortSignal): Promise<Table[]> {
    const { reader } = this.#deps.usersOf(database);
    const bounds = { user: reader, database, timeoutMs: TABLES_MS, signal };
    return this.#bounded(bounds, (driver) => listTables((sql) => ask(driver, sql)));
  }

  async #bounded<T>(bounds: Bounds, work: (driver: Connection) => Promise<T>): Promise<T> {
    const { links } = this.#deps;
    const { user, database, statement = '' } = bounds;
    const attempt = () => links.as({ user, database }, (driver) => this.#watched(driver, bounds, work));
    try {
      return await attempt().catch(async (error) => {
        if ((error as { errno?: number }).errno !== WRONG_PASSWORD) throw error;
        // The tenant changed the password of our user, as everyone may with his own.
        await links.putBackPassword(user);
        return attempt();
      });
    } catch (error) {
      throw asEngineError(error, statement);
    }
  }

  async #watched<T>(
    driver: Connection,
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
    work: (driver: Connection) => Promise<T>,
  ): Promise<T> {
    const { links } = this.#deps;
    const end = () => void links.asAdmin((admin) => sessions.kill(admin, driver.threadId)).catch(() => {});
    const timer = setTimeout(end, timeoutMs + PATIENCE_MS);
    signal.addEventListener('abort', end, { once: true });
    try {
      signal.throwIfAborted();
      await ask(driver, links.ways.timed(timeoutMs));
      const result = await work(driver);
      // What was not taken of it is not computed any more.
      if ((result as Partial<Fetched>).truncated === true) end();
      return result;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    }
  }
}

function ask(driver: Connection, sql: string): Promise<Record<string, unknown>[]> {
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>[]>();
  driver.query(sql, (error, rows) => (error ? reject(error) : resolve(rows as Record<string, unknown>[])));
  return promise;
}

function asResult({ fields, rows, affected, truncated }: Fetched): QueryResult {
  const columns = fields.map(({ name, columnType }) => ({ name, type: typeName(columnType) }));
  return { columns, rows, affected, truncated };
}

/** `bigint`, `var_string`, … */
function typeName(type: number | undefined): string | null {
  const names = mysql.Types as unknown as Record<number, string>;
  return type === undefined ? null : (names[type]?.toLowerCase() ?? null);
}

function asEngineError(error: unknown, statement: string): unknown {
  if (error instanceof AppError || !(error instanceof Error) || error.name === 'AbortError') return error;
  if (isDatabaseError(error)) {
    if (STOPPED.includes(error.errno)) return timedOut(error);
    if (FULL.includes(error.errno)) return diskFull(error);
    return asQueryFailed(error, statement);
  }
  if (error instanceof QueryFailed) return error;
  // Its session was ended by us, or the server is gone.
  return (error as { code?: string }).code === 'PROTOCOL_CONNECTION_LOST'
    ? timedOut(error)
    : connectionEnded('MariaDB', error);
}
