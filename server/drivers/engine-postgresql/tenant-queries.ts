/** Statements that we run for a tenant: in the tenant's name, few rows, and not for long. */
import type { Client } from 'pg';
import {
  type EngineDatabase,
  type Query,
  QueryFailed,
  type QueryResult,
  type Table,
} from '../../databases/engine.ts';
import { AppError, hostDiskFull } from '../../platform/errors.ts';
import { connectionEnded, diskFull, timedOut } from '../managed-server/server-engine.ts';
import {
  asJson,
  asQueryFailed,
  type Fetched,
  isDatabaseError,
  LimitedQuery,
  refuseNul,
} from './limited-query.ts';
import { type PostgresqlLinks, SentTooMuch } from './postgresql-links.ts';
import * as store from './postgresql-store.ts';
import { beginReading, listTables, typeNames } from './tables-store.ts';

export interface TenantQueriesDeps {
  readonly links: PostgresqlLinks;
  /** Whether a tenant could come as the role by which we run statements, had it another password. */
  readonly isGuest: boolean;
  readonly rolesOf: (database: EngineDatabase) => store.Roles;
  /** The watchdog keeps tenants from writing meanwhile. */
  readonly isDiskLow: () => boolean;
}

const TABLES_MS = 10_000;
/** Between the proper end of a statement's time, a request to end, and the end of its session. */
const PATIENCE_MS = 1000;
/** A single value can be larger than all that is shown: it is not taken into memory. */
const MAX_OVERSHOOT_BYTES = 16 * 2 ** 20;
const CANCELLED = '57014';
const SESSION_ENDED = '57P01';
const DISK_FULL = '53100';
const READ_ONLY_TRANSACTION = '25006';
const PROGRAM_LIMIT = '54000';
const TOO_LARGE = 'The rows are too large to be shown here: select fewer of them, or parts of their values';
const WRONG_PASSWORD = '28P01';

interface Bounds {
  readonly timeoutMs: number;
  readonly maxBytes?: number;
  readonly signal: AbortSignal;
  readonly options?: string;
}

export class TenantQueries {
  readonly #deps: TenantQueriesDeps;

  constructor(deps: TenantQueriesDeps) {
    this.#deps = deps;
  }

  async run(database: EngineDatabase, query: Query): Promise<QueryResult> {
    const { params, readOnly, maxRows, maxBytes, signal } = query;
    const text = String(query.statement);
    refuseNul(text, params);
    const timeoutMs = Math.min(query.timeoutMs, database.limits.statementMs);
    const { links, isGuest, rolesOf, isDiskLow } = this.#deps;
    const run = this.#bounded(database, { timeoutMs, maxBytes, signal }, async (client) => {
      if (readOnly) await beginReading(client);
      const wanted = new LimitedQuery({ text, params, maxRows, maxBytes });
      client.query(wanted);
      const fetched = await wanted.result;
      const names = fetched.columns.length === 0 ? [] : await typeNames(client, fetched.columns);
      return asResult(fetched, names);
    }).catch((error) => {
      const isHeld = (error as Partial<QueryFailed>).engineCode === READ_ONLY_TRANSACTION && !readOnly;
      throw isHeld && isDiskLow() ? hostDiskFull(error) : error;
    });
    if (!isGuest || readOnly) return run;
    return run.finally(() => links.putBackPassword(rolesOf(database).local));
  }

  async tables(database: EngineDatabase, signal: AbortSignal): Promise<Table[]> {
    const bounds = { timeoutMs: TABLES_MS, signal, options: '-c search_path=pg_catalog' };
    return this.#bounded(database, bounds, listTables);
  }

  async #bounded<T>(
    database: EngineDatabase,
    bounds: Bounds,
    work: (client: Client) => Promise<T>,
  ): Promise<T> {
    const { links, rolesOf } = this.#deps;
    const { local } = rolesOf(database);
    const { timeoutMs, maxBytes, signal, options = '' } = bounds;
    const config = {
      user: local,
      database: database.database,
      options: `-c statement_timeout=${timeoutMs} ${options}`,
      ...(maxBytes === undefined ? {} : { maxBytes: maxBytes + MAX_OVERSHOOT_BYTES }),
    };
    const attempt = () => links.as(config, (client) => this.#watched(client, { timeoutMs, signal }, work));
    try {
      return await attempt().catch(async (error) => {
        if ((error as { code?: string }).code !== WRONG_PASSWORD) throw error;
        // The tenant changed the password of our role, as everyone may with his own.
        await links.putBackPassword(local);
        return attempt();
      });
    } catch (error) {
      throw asEngineError(error);
    }
  }

  async #watched<T>(
    client: Client,
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
    work: (client: Client) => Promise<T>,
  ): Promise<T> {
    const { links } = this.#deps;
    const { processID: pid } = client as unknown as { readonly processID: number };
    const stop = (isHard: boolean) =>
      void links.asAdmin((admin) => store.cancel(admin, pid, isHard)).catch(() => {});
    const left = () => stop(true);
    const soft = setTimeout(stop, timeoutMs + PATIENCE_MS, false);
    const hard = setTimeout(stop, timeoutMs + 2 * PATIENCE_MS, true);
    signal.addEventListener('abort', left, { once: true });
    try {
      signal.throwIfAborted();
      return await work(client);
    } finally {
      clearTimeout(soft);
      clearTimeout(hard);
      signal.removeEventListener('abort', left);
    }
  }
}

function asResult(fetched: Fetched, names: readonly string[]): QueryResult {
  const { columns, rows, affected, truncated } = fetched;
  return {
    columns: columns.map(({ name }, at) => ({ name, type: names[at] ?? null })),
    rows: rows.map((row) => row.map((value, at) => asJson(value, columns[at]?.typeId ?? 0))),
    affected,
    truncated,
  };
}

function asEngineError(error: unknown): unknown {
  if (error instanceof AppError || error instanceof QueryFailed || !(error instanceof Error)) return error;
  if (error instanceof SentTooMuch) return new QueryFailed(TOO_LARGE, PROGRAM_LIMIT);
  if (!isDatabaseError(error)) return connectionEnded('PostgreSQL', error);
  if (error.code === CANCELLED) return timedOut(error);
  if (error.code === SESSION_ENDED) return timedOut(error);
  if (error.code === DISK_FULL) return diskFull(error);
  return asQueryFailed(error);
}
