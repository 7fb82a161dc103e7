/** Statements of the API that run in a tenant's name: few rows, and not for long. */
import {
  type EngineDatabase,
  type InsertBatch,
  type Insertion,
  MOST_REFUSED,
  type Query,
  QueryFailed,
  type QueryResult,
  type RefusedRow,
  type RowChanges,
  RowNotChanged,
  RowsRefused,
  type Scan,
  type Table,
  TableLeft,
} from '../../../databases/engine.ts';
import { AppError, isAppError } from '../../../platform/errors.ts';
import { connectionEnded, timedOut } from '../database-server.ts';

/** `save` sets a savepoint, `keep` releases it, and `undo` rolls back to it. */
export type Step = 'begin' | 'commit' | 'rollback' | 'save' | 'keep' | 'undo';

/** The engine-specific part, over a connection `C`. */
export interface Statements<C> {
  /** For humans. */
  readonly title: string;
  /** Code of the driver's error for a wrong password. */
  readonly wrongPassword: string;
  /** Throws QueryFailed for a statement that must not reach the server. */
  check(query: Query): void;
  /** Our role that runs the statement for the tenant. */
  roleFor(database: EngineDatabase, readOnly: boolean): string;
  /** Provides a connection of that role, whose statements the server ends after `timeoutMs`. */
  as<T>(how: RunHow, work: (connection: C) => Promise<T>): Promise<T>;
  run(connection: C, query: Query): Promise<QueryResult>;
  /** See Engine.scan(). */
  scan(connection: C, scan: Scan): Promise<void>;
  /** Whether a transaction may create a table. */
  readonly makesTablesInTransactions: boolean;
  /** A step of a transaction that writes. */
  transact(connection: C, step: Step): Promise<void>;
  tables(connection: C): Promise<Table[]>;
  /** Ends the statement, or with `isHard` the session. */
  stop(connection: C, isHard: boolean): Promise<void>;
  /** The API's error for one of the driver; null: its session ended, or it is not one of the server's. */
  asError(error: Error, statement: string): Error | null;
}

export interface RunHow {
  readonly role: string;
  readonly database: string;
  readonly timeoutMs: number;
  /** Maximum size of the result; null: the statement is Cloudlet's own. */
  readonly maxBytes: number | null;
}

export interface TenantQueriesDeps<C> {
  readonly statements: Statements<C>;
  readonly links: { putBackPassword(role: string): Promise<void> };
  /** The operator's server: a tenant could set our role's password, and log in with it. */
  readonly isGuest: boolean;
}

interface Bound {
  readonly signal: AbortSignal;
  readonly statement: string;
  /** Time limit of all statements together; default: that of one statement. */
  readonly watchMs?: number;
}

interface Watching {
  /** Aborts when the caller leaves. */
  readonly signal: AbortSignal;
  /** The statement exceeds its time, or the caller has left: it is being ended. */
  readonly onStop: () => void;
}

/** The statements give no rows. */
const OF_A_CHANGE = { readOnly: false, maxRows: 1, maxBytes: 2 ** 16 };
const TABLES_MS = 10_000;
/** Time limit for a client that reads all rows of a table. */
const LONG_MS = 60 * 60_000;
/** Maximum bytes that the server may send of skipped rows. */
const SKIPPED_BYTES = 64 * 2 ** 20;
/** Wait for the server to end a statement, then for our request to end it; then its session is ended. */
const PATIENCE_MS = 1000;

export class TenantQueries<C> {
  readonly #deps: TenantQueriesDeps<C>;

  constructor(deps: TenantQueriesDeps<C>) {
    this.#deps = deps;
  }

  async run(database: EngineDatabase, query: Query): Promise<QueryResult> {
    const { statements, links, isGuest } = this.#deps;
    const { readOnly, signal, skip = 0 } = query;
    const maxBytes = query.maxBytes + (skip === 0 ? 0 : SKIPPED_BYTES);
    statements.check(query);
    const role = statements.roleFor(database, readOnly);
    const timeoutMs = Math.min(query.timeoutMs, database.limits.statementMs);
    const how = { role, database: database.database, timeoutMs, maxBytes };
    try {
      const statement = String(query.statement);
      return await this.#bounded(how, { signal, statement }, (connection) =>
        statements.run(connection, query),
      );
    } finally {
      if (isGuest && !readOnly) await links.putBackPassword(role);
    }
  }

  /** See Engine.change(). */
  async change(database: EngineDatabase, { statements: all, timeoutMs: mostMs, signal }: RowChanges) {
    const { statements, links, isGuest } = this.#deps;
    const queries = all.map((one) => ({ ...one, ...OF_A_CHANGE, timeoutMs: mostMs, signal }));
    for (const query of queries) statements.check(query);
    const role = statements.roleFor(database, false);
    const timeoutMs = Math.min(mostMs, database.limits.statementMs);
    const how = { role, database: database.database, timeoutMs, maxBytes: OF_A_CHANGE.maxBytes };
    try {
      await this.#bounded(how, { signal, statement: '' }, (connection) =>
        this.#changeAll(connection, queries),
      );
    } finally {
      if (isGuest) await links.putBackPassword(role);
    }
  }

  async #changeAll(connection: C, queries: readonly Query[]): Promise<void> {
    const { statements } = this.#deps;
    await statements.transact(connection, 'begin');
    try {
      for (const [at, query] of queries.entries()) {
        const { affected } = await statements.run(connection, query);
        if (affected !== 1) throw new RowNotChanged({ at, rows: affected ?? 0 });
      }
    } catch (error) {
      // A connection that is gone has rolled back.
      await statements.transact(connection, 'rollback').catch(() => {});
      throw error;
    }
    await statements.transact(connection, 'commit');
  }

  /** See Engine.scan(). */
  scan(database: EngineDatabase, scan: Scan): Promise<void> {
    const { statements } = this.#deps;
    const { signal } = scan;
    const role = statements.roleFor(database, true);
    const how = { role, database: database.database, timeoutMs: LONG_MS, maxBytes: null };
    const statement = String(scan.statement);
    return this.#bounded(how, { signal, statement }, (connection) => statements.scan(connection, scan));
  }

  /** See Engine.insert(). */
  async insert(database: EngineDatabase, insertion: Insertion): Promise<void> {
    const { statements, links, isGuest } = this.#deps;
    const { first, undo, signal } = insertion;
    const role = statements.roleFor(database, false);
    const how = { role, database: database.database, timeoutMs: database.limits.statementMs, maxBytes: null };
    const isMadeBefore = first !== null && !statements.makesTablesInTransactions;
    const run = (statement: Query['statement']) =>
      this.run(database, { ...OF_A_CHANGE, statement, params: [], timeoutMs: TABLES_MS, signal });
    if (isMadeBefore) await run(first);
    try {
      await this.#bounded(how, { signal, statement: '', watchMs: LONG_MS }, (connection) =>
        this.#insertAll(connection, { ...insertion, first: isMadeBefore ? null : first }),
      );
    } catch (error) {
      const after = new AbortController().signal;
      if (isMadeBefore && undo !== null)
        await this.run(database, {
          ...OF_A_CHANGE,
          statement: undo,
          params: [],
          timeoutMs: TABLES_MS,
          signal: after,
        }).catch(() => {
          throw new TableLeft(error);
        });
      throw error;
    } finally {
      if (isGuest) await links.putBackPassword(role);
    }
  }

  async #insertAll(connection: C, { first, batches, signal }: Insertion): Promise<void> {
    const { statements } = this.#deps;
    const query = { ...OF_A_CHANGE, params: [], timeoutMs: TABLES_MS, signal };
    await statements.transact(connection, 'begin');
    try {
      if (first !== null) await statements.run(connection, { ...query, statement: first });
      let before = 0;
      for await (const batch of batches) {
        signal.throwIfAborted();
        before += await this.#insertBatch(connection, batch, { before, query });
      }
    } catch (error) {
      await statements.transact(connection, 'rollback').catch(() => {});
      throw error;
    }
    await statements.transact(connection, 'commit');
  }

  /** The number of rows. If a batch is refused, each row is tried alone to name the bad ones. */
  async #insertBatch(
    connection: C,
    { whole, each }: InsertBatch,
    { before, query }: { readonly before: number; readonly query: Omit<Query, 'statement'> },
  ): Promise<number> {
    const { statements } = this.#deps;
    const run = async (statement: Pick<Query, 'statement'>) => {
      const all = { ...query, ...statement };
      statements.check(all);
      return (await statements.run(connection, all)).affected;
    };
    await statements.transact(connection, 'save');
    try {
      const stored = (await run(whole())) ?? 0;
      await statements.transact(connection, 'keep');
      return stored;
    } catch (error) {
      if (refusalOf(error, statements) === null) throw error;
      await statements.transact(connection, 'undo');
      const refused: RefusedRow[] = [];
      for (const [at, statement] of each().entries()) {
        if (refused.length === MOST_REFUSED) break;
        try {
          await statements.transact(connection, 'save');
          await run(statement);
        } catch (cause) {
          const reason = refusalOf(cause, statements);
          if (reason === null) throw cause;
          refused.push({ at: before + at, message: reason });
          await statements.transact(connection, 'undo');
        }
      }
      throw refused.length > 0 ? new RowsRefused(refused) : error;
    }
  }

  tables(database: EngineDatabase, signal: AbortSignal): Promise<Table[]> {
    const { statements } = this.#deps;
    const role = statements.roleFor(database, true);
    const how = { role, database: database.database, timeoutMs: TABLES_MS, maxBytes: null };
    return this.#bounded(how, { signal, statement: '' }, (connection) => statements.tables(connection));
  }

  async #bounded<T>(
    how: RunHow,
    { signal, statement, watchMs = how.timeoutMs }: Bound,
    work: (connection: C) => Promise<T>,
  ): Promise<T> {
    const { statements, links } = this.#deps;
    let isStopped = false;
    const onStop = () => {
      isStopped = true;
    };
    const attempt = () =>
      statements.as(how, (connection) =>
        this.#watched(connection, { timeoutMs: watchMs, signal, onStop }, work),
      );
    try {
      return await attempt().catch(async (error) => {
        if (error.code !== statements.wrongPassword) throw error;
        // The tenant changed the password of our role, which roles may do themselves.
        await links.putBackPassword(how.role);
        return attempt();
      });
    } catch (error) {
      const isPlain =
        error instanceof AppError ||
        error instanceof QueryFailed ||
        error instanceof RowNotChanged ||
        error instanceof RowsRefused ||
        !(error instanceof Error);
      if (isPlain || error.name === 'AbortError') throw error;
      const said = statements.asError(error, statement);
      throw said ?? (isStopped ? timedOut(error) : connectionEnded(statements.title, error));
    }
  }

  async #watched<T>(
    connection: C,
    { timeoutMs, signal, onStop }: Pick<RunHow, 'timeoutMs'> & Watching,
    work: (connection: C) => Promise<T>,
  ): Promise<T> {
    const { statements } = this.#deps;
    const stop = (isHard: boolean) => {
      onStop();
      void statements.stop(connection, isHard).catch(() => {});
    };
    const left = () => stop(true);
    const soft = setTimeout(stop, timeoutMs + PATIENCE_MS, false);
    const hard = setTimeout(stop, timeoutMs + 2 * PATIENCE_MS, true);
    signal.addEventListener('abort', left, { once: true });
    try {
      signal.throwIfAborted();
      return await work(connection);
    } finally {
      clearTimeout(soft);
      clearTimeout(hard);
      signal.removeEventListener('abort', left);
    }
  }
}

/** The reason why a row cannot be stored; null: something else failed. */
function refusalOf<C>(error: unknown, { asError }: Pick<Statements<C>, 'asError'>): string | null {
  if (error instanceof QueryFailed) return error.message;
  if (isAppError(error, 'invalid_request')) return error.message;
  if (!(error instanceof Error) || error instanceof AppError) return null;
  const said = asError(error, '');
  return said instanceof QueryFailed ? said.message : null;
}
