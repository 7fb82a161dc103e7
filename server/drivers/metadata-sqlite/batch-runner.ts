/**
 * Runs a batch in one transaction, so that one fsync stores all its commits, and in savepoints, so that
 * one which a rule refuses leaves its neighbours alone.
 */
import Database from 'better-sqlite3';
import type { SqlValue } from '../../metadata/metadata.ts';
import type { BatchFailure, BatchMessage, CommitFailure } from './batch.ts';
import { BatchCursor } from './batch.ts';
import { toBound } from './integers.ts';
import { stablePlan } from './stable-plan.ts';

/** Ends the batch: nothing of it is stored, or after `broken` nobody knows. */
export class BatchFailed extends Error {
  readonly failure: BatchFailure;

  constructor(failure: BatchFailure) {
    super(failure.detail);
    this.failure = failure;
  }
}

class Refused extends Error {
  readonly reason: CommitFailure['reason'];

  constructor(reason: CommitFailure['reason'], detail: string) {
    super(detail);
    this.reason = reason;
  }
}

/**
 * What an error of SQLite means for the batch; null when it concerns one commit alone.
 * SQLITE_IOERR_SHMSIZE is a full disk too: the wal-index could not grow, and holds nothing durable.
 */
export function batchFailureOf(error: unknown): BatchFailure | null {
  if (!(error instanceof Database.SqliteError)) return null;
  const detail = `${error.code}: ${error.message}`;
  if (error.code === 'SQLITE_FULL' || error.code === 'SQLITE_IOERR_SHMSIZE')
    return { reason: 'full', detail };
  if (/^SQLITE_(BUSY|LOCKED|NOMEM|IOERR_NOMEM)/.test(error.code)) return { reason: 'busy', detail };
  if (/^SQLITE_(IOERR|CORRUPT|NOTADB|READONLY|CANTOPEN|PROTOCOL)/.test(error.code)) {
    return { reason: 'broken', detail };
  }
  return null;
}

/** Which rule refused, from the extended result code. */
function reasonOf(error: unknown): CommitFailure['reason'] {
  if (error instanceof Refused) return error.reason;
  if (!(error instanceof Database.SqliteError)) return 'fault';
  if (/^SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY|ROWID)$/.test(error.code)) return 'unique';
  if (error.code === 'SQLITE_CONSTRAINT_FOREIGNKEY') return 'foreign_key';
  return error.code.startsWith('SQLITE_CONSTRAINT') ? 'check' : 'fault';
}

export interface BatchOutcome {
  /** Changes and last row id of each statement, in order; those of failed commits are left out. */
  readonly results: number[];
  readonly failures: CommitFailure[];
}

export class BatchRunner {
  readonly #database: Database.Database;
  readonly #control: Record<'begin' | 'end' | 'rollback' | 'open' | 'keep' | 'undo', Database.Statement>;
  #sql: string[] = [];
  #prepared: (Database.Statement | undefined)[] = [];

  constructor(database: Database.Database) {
    this.#database = database;
    this.#control = {
      begin: database.prepare('BEGIN IMMEDIATE'),
      end: database.prepare('COMMIT'),
      rollback: database.prepare('ROLLBACK'),
      open: database.prepare('SAVEPOINT one_commit'),
      keep: database.prepare('RELEASE one_commit'),
      undo: database.prepare('ROLLBACK TO one_commit'),
    };
  }

  /**
   * Returns once the batch is on disk. Throws BatchFailed when none of it is stored.
   * Savepoints cost a sixth of the time, so the batch is first run without: only when a rule refuses
   * something is it rolled back and run again, each commit in its savepoint.
   */
  run(message: BatchMessage): BatchOutcome {
    if (message.resetSql) {
      this.#sql = [];
      this.#prepared = [];
    }
    this.#sql.push(...message.newSql);
    try {
      this.#control.begin.run();
      const outcome = this.#runAll(message) ?? this.#runEach(message);
      this.#control.end.run();
      return outcome;
    } catch (error) {
      const failure = batchFailureOf(error) ?? { reason: 'broken', detail: String(error) };
      throw new BatchFailed(this.#rollBack() ?? failure);
    }
  }

  /** A rollback that fails leaves a transaction of unknown content, whatever came before. */
  #rollBack(): BatchFailure | null {
    try {
      if (this.#database.inTransaction) this.#control.rollback.run();
      return null;
    } catch (error) {
      return { reason: 'broken', detail: `rollback failed: ${String(error)}` };
    }
  }

  /** All commits, or null with an untouched new transaction when one was refused. */
  #runAll(message: BatchMessage): BatchOutcome | null {
    const cursor = new BatchCursor(message);
    const results: number[] = [];
    for (let commit = 0; commit < message.commits; commit++) {
      if (this.#runStatements(cursor, results) === null) continue;
      this.#control.rollback.run();
      this.#control.begin.run();
      return null;
    }
    return { results, failures: [] };
  }

  #runEach(message: BatchMessage): BatchOutcome {
    const cursor = new BatchCursor(message);
    const results: number[] = [];
    const failures: CommitFailure[] = [];
    for (let commit = 0; commit < message.commits; commit++) {
      const kept = results.length;
      this.#control.open.run();
      const refusal = this.#runStatements(cursor, results);
      if (refusal !== null) {
        this.#control.undo.run();
        results.length = kept;
        failures.push({ commit, ...refusal });
      }
      this.#control.keep.run();
    }
    return { results, failures };
  }

  /**
   * The statements of one commit; null, or which one was refused and why. The cursor ends behind them all.
   */
  #runStatements(cursor: BatchCursor, results: number[]): Omit<CommitFailure, 'commit'> | null {
    const count = cursor.number();
    const rowIds: number[] = [];
    for (let index = 0; index < count; index++) {
      try {
        this.#runStatement(cursor, rowIds, results);
      } catch (error) {
        if (batchFailureOf(error) !== null || !this.#database.inTransaction) throw error;
        cursor.skipStatements(count - index - 1);
        return {
          index,
          reason: reasonOf(error),
          detail: error instanceof Error ? error.message : String(error),
        };
      }
    }
    return null;
  }

  /** Reads one statement off the cursor, whole even when it fails, and runs it. */
  #runStatement(cursor: BatchCursor, rowIds: number[], results: number[]): void {
    const sqlNumber = cursor.number();
    const expected = cursor.number();
    const paramCount = cursor.number();
    const params: SqlValue[] = [];
    for (let i = 0; i < paramCount; i++) {
      try {
        params.push(toBound(cursor.param(rowIds)));
      } catch (error) {
        cursor.skipParams(paramCount - i - 1);
        throw error;
      }
    }
    const { changes, lastInsertRowid } = this.#statement(sqlNumber).run(params);
    if (expected >= 0 && changes !== expected) {
      throw new Refused('expectation', `expected ${expected} changed rows, got ${changes}`);
    }
    const rowId = Number(lastInsertRowid);
    rowIds.push(rowId);
    results.push(changes, rowId);
  }

  #statement(sqlNumber: number): Database.Statement {
    let statement = this.#prepared[sqlNumber];
    if (statement === undefined) {
      statement = this.#database.prepare(stablePlan(this.#sql[sqlNumber] ?? ''));
      this.#prepared[sqlNumber] = statement;
    }
    return statement;
  }
}
