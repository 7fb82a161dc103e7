/** Statements and tables of a database, for a console: few rows, and read-only by default. */
import type { Principal } from '../calls/principal.ts';
import type { Clock } from '../platform/clock.ts';
import { KeyedSemaphore } from '../platform/concurrency.ts';
import { AppError, invalidField } from '../platform/errors.ts';
import { JsonText } from '../platform/json/json.ts';
import {
  type EngineName,
  type Insertion,
  type Query,
  QueryFailed,
  type QueryResult,
  RowNotChanged,
  type Scan,
  type Table,
  TableLeft,
} from './engine.ts';
import type { EngineDescription } from './engine-description.ts';
import type { Engines } from './engines.ts';
import type { DataFaults } from './life/data-faults.ts';
import type { Lifecycle } from './life/lifecycle.ts';
import type { OwnedDatabases } from './life/owned-databases.ts';
import { assertReadable, assertReady } from './life/states.ts';
import type { NewQuery, QueryResponse, TestDatabaseEntry } from './query-schema.ts';
import { RunningQueries, type RunningQuery } from './querying/running-queries.ts';

const MAX_ROWS = 1000;
/** Limit of the rows as JSON. */
const MAX_BYTES = 4 * 2 ** 20;
const TIMEOUT_MS = 10_000;
/** Concurrent queries per account: result rows are in memory more than once. */
const AT_ONCE = 8;
/** Limit for scans, which may take an hour. */
const SCANS_AT_ONCE = 2;

interface QueryCall {
  readonly input: NewQuery;
  /** Limit of the rows as JSON; default: 4 MiB. */
  readonly maxBytes?: number;
  /** See Query. */
  readonly isExact?: boolean;
  readonly signal: AbortSignal;
}

interface ChangeCall {
  readonly statements: readonly Pick<Query, 'statement' | 'params'>[];
  readonly signal: AbortSignal;
}

export interface QueriesDeps {
  readonly owned: OwnedDatabases;
  readonly engines: Engines;
  readonly lifecycle: Pick<Lifecycle, 'inEngine'>;
  readonly clock: Clock;
  /** undefined: damage is not tracked. */
  readonly faults?: Pick<DataFaults, 'noteMet'> | undefined;
}

export class Queries {
  readonly #deps: QueriesDeps;
  readonly #turns = new KeyedSemaphore<number>(AT_ONCE);
  readonly #scans = new KeyedSemaphore<number>(SCANS_AT_ONCE);
  readonly #running = new RunningQueries();

  constructor(deps: QueriesDeps) {
    this.#deps = deps;
  }

  /**
   * Runs a query; an account's queries beyond eight are queued. Throws `query_failed` with the engine's own
   * error, `query_timeout`, `database_not_ready`, and `operation_cancelled` after cancel().
   */
  run(principal: Principal, databaseId: string, call: QueryCall): Promise<JsonText<QueryResponse>> {
    const { accountId } = principal;
    const { statement, command, query_id: queryId, read_only: readOnly = true } = call.input;
    const startedAt = this.#deps.clock.now();
    const about = { statement: statement ?? command, readOnly, startedAt, signal: call.signal };
    return this.#running.run({ accountId, databaseId, queryId }, about, (signal) =>
      this.#turns.run(accountId, signal, () => this.#run(principal, databaseId, { ...call, signal })),
    );
  }

  /** Queries of the account that run in this database, the oldest first. */
  async running(principal: Principal, databaseId: string): Promise<readonly RunningQuery[]> {
    await this.#deps.owned.findLive(principal, databaseId);
    return this.#running.list({ accountId: principal.accountId, databaseId });
  }

  /** Ends the statement in the database. Throws `not_found` when none of that id runs. */
  async cancel(principal: Principal, databaseId: string, queryId: string): Promise<RunningQuery> {
    await this.#deps.owned.findLive(principal, databaseId);
    return this.#running.cancel({ accountId: principal.accountId, databaseId, queryId });
  }

  async #run(
    principal: Principal,
    databaseId: string,
    { input, maxBytes = MAX_BYTES, isExact = false, signal }: QueryCall,
  ): Promise<JsonText<QueryResponse>> {
    const { owned, engines, lifecycle, clock } = this.#deps;
    const row = await owned.findLive(principal, databaseId);
    const readOnly = input.read_only ?? true;
    if (!readOnly && input.skip !== undefined)
      throw invalidField('skip', 'is only allowed with read_only, because the statement runs again');
    if (readOnly) assertReadable(row);
    else assertReady(row);
    const query: Query = {
      statement: statementOf(engines.about(row.engine), input),
      params: input.params ?? [],
      readOnly,
      maxRows: input.max_rows ?? MAX_ROWS,
      skip: input.skip ?? 0,
      maxBytes,
      timeoutMs: TIMEOUT_MS,
      isExact,
      signal,
    };
    const began = clock.monotonic();
    try {
      const result = await engines.get(row.engine).query(lifecycle.inEngine(row), query);
      return responseOf(result, Math.round((clock.monotonic() - began) * 10) / 10);
    } catch (error) {
      throw this.#asError(error, { databaseId, engine: row.engine });
    }
  }

  /**
   * Runs statements that change one row each, all or none. Throws the errors of run(), and
   * `write_conflict` if a row has changed since it was read.
   */
  change(principal: Principal, databaseId: string, { statements, signal }: ChangeCall): Promise<void> {
    return this.#turns.run(principal.accountId, signal, async () => {
      const { owned, engines, lifecycle } = this.#deps;
      const row = await owned.findLive(principal, databaseId);
      assertReady(row);
      const { engine: name } = row;
      const engine = engines.get(name);
      if (engine.change === undefined) throw invalidField('changes', `are not supported by ${name}`);
      try {
        await engine.change(lifecycle.inEngine(row), { statements, timeoutMs: TIMEOUT_MS, signal });
      } catch (error) {
        throw this.#asError(error, { databaseId, engine: name });
      }
    });
  }

  /** All rows of a statement in one snapshot; an account's scans beyond two are queued. Throws as run(). */
  scan(principal: Principal, databaseId: string, scan: Scan): Promise<void> {
    return this.#scans.run(principal.accountId, scan.signal, async () => {
      const { owned, engines, lifecycle } = this.#deps;
      const row = await owned.findLive(principal, databaseId);
      assertReadable(row);
      const { engine: name } = row;
      const engine = engines.get(name);
      if (engine.scan === undefined) throw invalidField('table', `cannot be exported from ${name}`);
      try {
        await engine.scan(lifecycle.inEngine(row), scan);
      } catch (error) {
        throw this.#asError(error, { databaseId, engine: name });
      }
    });
  }

  /** See Engine.insert(). Counts as a scan; throws `database_not_ready` and the errors of run() as well. */
  insert(principal: Principal, databaseId: string, insertion: Insertion): Promise<void> {
    return this.#scans.run(principal.accountId, insertion.signal, async () => {
      const { owned, engines, lifecycle } = this.#deps;
      const row = await owned.findLive(principal, databaseId);
      assertReady(row);
      const { engine: name } = row;
      const engine = engines.get(name);
      if (engine.insert === undefined) throw invalidField('table', `does not support imports into ${name}`);
      try {
        await engine.insert(lifecycle.inEngine(row), insertion);
      } catch (error) {
        if (error instanceof TableLeft)
          throw new TableLeft(this.#asError(error.cause, { databaseId, engine: name }));
        throw this.#asError(error, { databaseId, engine: name });
      }
    });
  }

  #asError(error: unknown, { databaseId, engine }: { databaseId: string; engine: EngineName }): unknown {
    const { engines, faults } = this.#deps;
    if (error instanceof RowNotChanged) return rowChanged(error);
    if (!(error instanceof QueryFailed)) return error;
    if (!engines.about(engine).damageCodes.includes(error.engineCode)) return queryFailed(error);
    faults?.noteMet(databaseId, error.message);
    return dataDamaged(error);
  }

  async tables(
    principal: Principal,
    databaseId: string,
    signal: AbortSignal,
  ): Promise<JsonText<readonly Table[]>> {
    const { owned, engines, lifecycle } = this.#deps;
    const row = await owned.findLive(principal, databaseId);
    assertReadable(row);
    return engines.get(row.engine).tables(lifecycle.inEngine(row), signal);
  }

  /** Databases that programs of the account created on the same server. */
  async testDatabases(principal: Principal, databaseId: string): Promise<TestDatabaseEntry[]> {
    const { owned, engines, lifecycle } = this.#deps;
    const row = await owned.findLive(principal, databaseId);
    assertReadable(row);
    const engine = engines.get(row.engine);
    const database = lifecycle.inEngine(row);
    const found = (await engine.testDatabases?.(database)) ?? [];
    return found.map(({ name, sizeBytes, madeBy }) => ({
      name,
      size_bytes: sizeBytes,
      username: madeBy === null ? null : madeBy.replace(/^d_/, 'u_'),
    }));
  }

  /** The latest log lines of this database only. */
  async log(principal: Principal, databaseId: string, maxBytes: number): Promise<string> {
    const { owned, engines, lifecycle } = this.#deps;
    const row = await owned.findLive(principal, databaseId);
    const engine = engines.get(row.engine);
    if (engine.log === undefined)
      throw new AppError('not_found', `${row.engine} databases have no log`, {
        hint: 'Errors are returned to the client that sent the statement',
      });
    return engine.log(lifecycle.inEngine(row), maxBytes);
  }
}

/** Columns and rows are passed on as written by the engine. */
function responseOf(
  { columns, rows, rowCount, affected, truncated }: QueryResult,
  elapsedMs: number,
): JsonText<QueryResponse> {
  const rest = JSON.stringify({ row_count: rowCount, affected, truncated, elapsed_ms: elapsedMs });
  const before = [Buffer.from('{"columns":'), ...columns.pieces, Buffer.from(',"rows":')];
  const pieces = [...before, ...rows.pieces, Buffer.from(`,${rest.slice(1)}`)];
  return new JsonText(pieces, [...columns.memory, ...rows.memory]);
}

/** The statement or command for such an engine. Throws `invalid_request` for one of another language. */
export function statementOf(
  { name, traits }: EngineDescription,
  { statement, command }: Pick<NewQuery, 'statement' | 'command'>,
): Query['statement'] {
  const isSql = traits.language === 'sql';
  if (!isSql && command !== undefined) return command as Readonly<Record<string, unknown>>;
  if (isSql && statement !== undefined) return statement;
  throw invalidField(isSql ? 'statement' : 'command', `is required for ${name}`);
}

function rowChanged({ at, rows }: RowNotChanged): AppError {
  const detail =
    rows === 0
      ? `Change ${at + 1} matched no row: the row was changed or deleted meanwhile. Nothing was changed`
      : `Change ${at + 1} would have changed ${rows} rows instead of one. Nothing was changed`;
  const hint = 'Read the rows again, look at what is different, and repeat the change';
  return new AppError('write_conflict', detail, { hint, extra: { index: at } });
}

function dataDamaged(error: QueryFailed): AppError {
  return new AppError('data_damaged', `The statement read damaged data: ${error.message}`, {
    hint: 'Copy what can still be read, then load the last dump or restore an earlier state; the operator has an alarm',
    extra: { engine_code: error.engineCode },
    cause: error,
  });
}

function queryFailed(error: QueryFailed): AppError {
  const { message, engineCode, position, hint } = error;
  const extra = { engine_code: engineCode, position };
  return new AppError('query_failed', message, hint === undefined ? { extra } : { extra, hint });
}
