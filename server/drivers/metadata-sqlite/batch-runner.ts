/**
 * Runs a batch in one transaction, so that one fsync stores all its commits. If it must be
 * isolated, each commit has a savepoint, so that a refused commit does not affect the others.
 */
import Database from 'better-sqlite3';
import type { SqlValue } from '../../metadata/metadata.ts';
import {
  BatchCursor,
  type BatchFailure,
  type BatchMessage,
  type CommitFailure,
  type RowIds,
} from './batch.ts';
import { stablePlan } from './connection.ts';
import { toBound } from './integers.ts';

/** Fails the batch: nothing is stored or, after `broken`, the outcome is unknown. */
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
 * Maps an error of SQLite to the failure of the batch; null if it concerns a single commit.
 * SQLITE_IOERR_SHMSIZE means a full disk too: the wal-index could not grow, and contains nothing
 * durable.
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
  /** Changes and last row id of each statement, in order, without failed commits. */
  readonly results: number[];
  readonly failures: CommitFailure[];
}

/** The shape of similar commits: their statements without the params. */
interface Form {
  readonly sqlNumber: number;
  readonly expected: number;
  readonly paramCount: number;
  /** Present once for the whole group. */
  readonly isShared: boolean;
}

/** Numbers in the results for one statement. */
const RESULT_WORDS = 2;

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
   * Returns once the batch is on disk; null if a rule refused something and nothing is stored,
   * which happens only to a batch that is not isolated. Throws BatchFailed if nothing is stored.
   */
  run(message: BatchMessage): BatchOutcome | null {
    if (message.resetSql) {
      this.#sql = [];
      this.#prepared = [];
    }
    this.#sql.push(...message.newSql);
    try {
      this.#control.begin.run();
      const outcome = message.isolated ? this.#runIsolated(message) : this.#runTogether(message);
      if (outcome === null) this.#control.rollback.run();
      else this.#control.end.run();
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

  #runTogether(message: BatchMessage): BatchOutcome | null {
    const cursor = new BatchCursor(message);
    const results: number[] = [];
    try {
      for (let left = message.commits; left > 0; ) left -= this.#runGroup(cursor, results);
      return { results, failures: [] };
    } catch (error) {
      if (this.#isOfTheBatch(error)) throw error;
      return null;
    }
  }

  /** Returns the number of commits in the group. */
  #runGroup(cursor: BatchCursor, results: number[]): number {
    const commits = cursor.number();
    const forms = readForms(cursor);
    const begin = results.length;
    for (let commit = 0; commit < commits; commit++) {
      const rowIds: RowIds = [];
      for (const form of forms) {
        if (form.isShared) {
          rowIds.push(undefined);
          results.push(0, 0);
        } else results.push(...this.#runStatement(form, cursor, rowIds));
      }
    }
    for (const [index, form] of forms.entries()) {
      if (!form.isShared) continue;
      const [changes, rowId] = this.#runStatement(form, cursor, []);
      for (let commit = 0; commit < commits; commit++) {
        const at = begin + (commit * forms.length + index) * RESULT_WORDS;
        results[at] = changes;
        results[at + 1] = rowId;
      }
    }
    return commits;
  }

  #runIsolated(message: BatchMessage): BatchOutcome {
    const cursor = new BatchCursor(message);
    const results: number[] = [];
    const failures: CommitFailure[] = [];
    for (let commit = 0; commit < message.commits; commit++) {
      cursor.number(); // of commits in this group: one
      const kept = results.length;
      this.#control.open.run();
      const refusal = this.#runCommit(cursor, results);
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
   * Runs the statements of one commit; null, or the refused statement and the reason. The cursor
   * ends after them all.
   */
  #runCommit(cursor: BatchCursor, results: number[]): Omit<CommitFailure, 'commit'> | null {
    const forms = readForms(cursor);
    const rowIds: RowIds = [];
    for (const [index, form] of forms.entries()) {
      try {
        results.push(...this.#runStatement(form, cursor, rowIds));
      } catch (error) {
        if (this.#isOfTheBatch(error)) throw error;
        for (const skipped of forms.slice(index + 1)) cursor.skipParams(skipped.paramCount);
        return {
          index,
          reason: reasonOf(error),
          detail: error instanceof Error ? error.message : String(error),
        };
      }
    }
    return null;
  }

  /** Whether an error concerns more than its own commit. */
  #isOfTheBatch(error: unknown): boolean {
    return batchFailureOf(error) !== null || !this.#database.inTransaction;
  }

  /**
   * Reads all params from the cursor, even if it fails, and runs the statement: changes and last
   * row id, which is also added to `rowIds`.
   */
  #runStatement(
    { sqlNumber, expected, paramCount }: Form,
    cursor: BatchCursor,
    rowIds: RowIds,
  ): readonly [number, number] {
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
    return [changes, rowId];
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

function readForms(cursor: BatchCursor): Form[] {
  return Array.from({ length: cursor.number() }, () => ({
    sqlNumber: cursor.number(),
    expected: cursor.number(),
    paramCount: cursor.number(),
    isShared: cursor.number() === 1,
  }));
}
