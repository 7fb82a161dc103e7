/** A Hrana stream: one connection and a client's requests on it, one at a time. */
import { setImmediate as endOfTurn } from 'node:timers/promises';
import { runBatch } from './batch.ts';
import type { Connection } from './connections.ts';
import type { Counters } from './database.ts';
import { HranaError } from './error.ts';
import { type Answer, type JsonObject, type Output, type Piece, protocolError } from './format.ts';
import { objectOf } from './json.ts';
import { readSql, type SqlStatement } from './sql.ts';
import { describeStatement, Execution, resultOf } from './statement.ts';
import { UserTransaction } from './user-transaction.ts';
import { bindingsOf } from './values.ts';
import type { WriteTurn } from './write-turn.ts';

export interface StreamDeps {
  readonly turn: WriteTurn<Stream>;
  readonly counters: Counters;
  /** Called before each statement that writes. */
  readonly beforeWrite: () => void;
  /** Monotonic, ms. */
  readonly now: () => number;
  /** How long a statement waits for other writers. */
  readonly busyMs: number;
  /** See HranaSessionsDeps. */
  readonly turnMs: number;
}

const MAX_STORED_SQL = 1_000;

export class Stream {
  readonly #deps: StreamDeps;
  readonly connection: Connection;
  /** SQL texts by the client's number; a WebSocket's streams share them. */
  readonly #stored: Map<number, string>;
  readonly userTransaction = new UserTransaction();
  #execution: Execution | undefined;
  #turnSince: number;
  /** Whether its transaction may not write. */
  #isReadOnly = false;
  /** Start of its transaction or cursor; undefined: no open read. */
  readingSince: number | undefined;
  /** Start of waiting for its client; undefined: a request is running. */
  idleSince: number | undefined;
  /** Resolves when the current request ends; undefined: none. */
  busy: Promise<void> | undefined;
  #leave = () => {};
  /** The latest baton. */
  baton = '';
  /** Why the stream ended. */
  ended: HranaError | undefined;
  /** Called when it ends. */
  onEnd: (() => void) | undefined;
  #signal: AbortSignal | undefined;

  constructor(connection: Connection, deps: StreamDeps, stored = new Map<number, string>()) {
    this.connection = connection;
    this.#stored = stored;
    this.#deps = deps;
    this.#turnSince = deps.now();
  }

  get isAutocommit(): boolean {
    return !this.connection.db.isTransaction;
  }

  get isWriting(): boolean {
    return this.#deps.turn.isHeldBy(this);
  }

  /** Begins a request; `signal` aborts when its client disconnects. */
  enter(signal: AbortSignal | undefined): void {
    this.#signal = signal;
    this.idleSince = undefined;
    this.#turnSince = this.#deps.now();
    this.busy = new Promise((resolve) => {
      this.#leave = resolve;
    });
  }

  /** Ends the request. */
  leave(now: number): void {
    this.idleSince = now;
    this.busy = undefined;
    this.#leave();
  }

  /** Handles one request. Throws the error. */
  async answer(given: JsonObject, output: Output): Promise<Answer> {
    this.assertOpen();
    const { type } = given;
    switch (type) {
      case 'execute':
        return { type, result: await this.#executeAlone(objectOf(given.stmt, 'stmt'), output) };
      case 'batch':
        return { type, result: await runBatch(this, given.batch, output) };
      case 'sequence':
        await this.#runSequence(given, output);
        return { type };
      case 'describe': {
        const statement = single(this.#sqlOf(given));
        return { type, result: output.description(describeStatement(this.connection.statements, statement)) };
      }
      case 'store_sql':
        storeSql(this.#stored, given);
        return { type };
      case 'close_sql':
        this.#stored.delete(Number(given.sql_id));
        return { type };
      case 'get_autocommit':
        return { type, isAutocommit: this.isAutocommit };
      default:
        throw protocolError(`Unknown request type ${JSON.stringify(given.type) ?? 'undefined'}`);
    }
  }

  /** Whether a `Stmt` begins or ends a transaction. */
  boundaryOf(stmt: JsonObject): SqlStatement['boundary'] {
    const [first] = readSql(this.#sqlOf(stmt));
    return first?.boundary ?? null;
  }

  #executeAlone(stmt: JsonObject, output: Output): Promise<Piece> {
    const { isAutocommit } = this;
    const wantsRows = stmt.want_rows !== false;
    this.userTransaction.beforeExecute(this.boundaryOf(stmt), { isAutocommit, wantsRows });
    return this.execute(stmt, output);
  }

  /** Runs a `Stmt` of the protocol: its StmtResult. */
  async execute(stmt: JsonObject, output: Output): Promise<Piece> {
    const execution = await this.open(stmt);
    try {
      return resultOf(execution, stmt.want_rows !== false, output);
    } finally {
      this.close();
    }
  }

  /** Prepares a `Stmt` for stepping, once it may write. Must be closed before the next. */
  open(stmt: JsonObject): Promise<Execution> {
    const statement = single(this.#sqlOf(stmt));
    return this.#open(statement, () => bindingsOf(statement, stmt));
  }

  /** Closes the open statement, and releases the write turn after an autocommit statement. */
  close(): void {
    this.#execution?.close();
    this.#execution = undefined;
    if (this.ended !== undefined) return;
    if (!this.isAutocommit) return;
    this.readingSince = undefined;
    this.#deps.turn.release(this);
  }

  /** Rolls back and frees the connection and the write turn. Later requests get the reason. */
  end(reason: HranaError): void {
    if (this.ended !== undefined) return;
    this.ended = reason;
    this.#execution?.close();
    this.#execution = undefined;
    this.readingSince = undefined;
    this.#deps.turn.release(this);
    this.onEnd?.();
  }

  /** Throws the reason when the stream has ended. */
  assertOpen(): void {
    if (this.ended !== undefined) throw this.ended;
  }

  /** Yields when this request has run for long. */
  async breathe(): Promise<void> {
    if (this.#deps.now() - this.#turnSince < this.#deps.turnMs) return;
    await endOfTurn();
    this.#turnSince = this.#deps.now();
  }

  async #runSequence(given: JsonObject, output: Output): Promise<void> {
    const statements = readSql(this.#sqlOf(given));
    this.userTransaction.beforeSequence(statements, this.isAutocommit);
    for (const statement of statements) {
      this.userTransaction.assertOpen(this.isAutocommit);
      const execution = await this.#open(statement, () => []);
      try {
        resultOf(execution, false, output);
      } finally {
        this.close();
      }
    }
  }

  async #open(statement: SqlStatement, bindings: () => ReturnType<typeof bindingsOf>): Promise<Execution> {
    await this.breathe();
    const { turn, counters, now, beforeWrite } = this.#deps;
    if (this.isAutocommit) this.#isReadOnly = statement.beginsReadOnly;
    else if (this.#isReadOnly && statement.writes) throw readOnly();
    if (statement.writes && !turn.take(this)) await this.#waitForTurn();
    this.assertOpen();
    if (statement.writes) beforeWrite();
    if (statement.leavesTrace) this.connection.isTouched = true;
    this.readingSince ??= now();
    try {
      this.#execution = new Execution(this.connection.statements, {
        statement,
        bindings: bindings(),
        counters,
      });
      return this.#execution;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  async #waitForTurn(): Promise<void> {
    const { turn, busyMs } = this.#deps;
    const got = await turn.wait(this, busyMs, this.#signal);
    if (this.ended !== undefined) turn.release(this);
    else if (!got) {
      const detail = `database is locked: other writers were active for ${busyMs / 1000} s`;
      throw new HranaError('SQLITE_BUSY', detail);
    }
  }

  #sqlOf({ sql, sql_id: id }: JsonObject): string {
    if (typeof sql === 'string') return sql;
    const stored = typeof id === 'number' ? this.#stored.get(id) : undefined;
    if (stored !== undefined) return stored;
    throw protocolError(id == null ? 'sql is missing' : `No SQL is stored as sql_id ${String(id)}`);
  }
}

function readOnly(): HranaError {
  return new HranaError('SQLITE_READONLY', 'SQLite error: attempt to write a readonly database');
}

/** Stores an SQL text under the number chosen by the client. Throws HranaError `PROTOCOL_ERROR`. */
export function storeSql(stored: Map<number, string>, { sql, sql_id: id }: JsonObject): void {
  if (typeof sql !== 'string' || !Number.isSafeInteger(id)) {
    throw protocolError('store_sql needs sql and a number as sql_id');
  }
  if (stored.has(Number(id))) throw protocolError(`sql_id ${String(id)} is in use`);
  if (stored.size >= MAX_STORED_SQL) throw protocolError(`At most ${MAX_STORED_SQL} SQL texts are stored`);
  stored.set(Number(id), sql);
}

function single(sql: string): SqlStatement {
  const [statement, more] = readSql(sql);
  if (statement === undefined) throw new HranaError('SQL_NO_STATEMENT', 'The SQL text contains no statement');
  if (more === undefined) return statement;
  throw new HranaError(
    'SQL_MANY_STATEMENTS',
    'The SQL text contains more than one statement: send them separately, or as a sequence (executeMultiple)',
  );
}
