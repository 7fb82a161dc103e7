/**
 * The metadata database that the domains need. One writer with group commit: a commit is a list of
 * statements, all or nothing, durable (fsynced) when the promise resolves. Reads see every commit whose
 * promise has resolved.
 *
 * Reads are typed Awaitable because SQLite answers at once, on the calling thread, while an engine behind a
 * socket cannot: callers always `await`.
 */
import { AppError, isAppError } from '../platform/errors.ts';

export type Awaitable<T> = T | Promise<T>;

export type SqlValue = string | number | bigint | null | Uint8Array;

/** The row id of an earlier INSERT in the same commit. */
export interface RowIdOf {
  /** Index of that statement within the commit. */
  readonly rowIdOf: number;
}

/** Kinds of resources whose changes are reported to watchers. */
export type ResourceKind = 'vm' | 'database' | 'balance' | 'operation' | 'recovery_point';

/** A changed resource. */
export interface ResourceChange {
  /** Owning account; null: the operators. */
  readonly accountId: number | null;
  readonly kind: ResourceKind;
  readonly id: string;
}

export interface Statement {
  /** With `?` placeholders. Constant text: it is the key of the prepared-statement cache. */
  readonly sql: string;
  readonly params: readonly (SqlValue | RowIdOf)[];
  /** The commit is rolled back and rejected unless exactly this many rows changed. */
  readonly expectChanges?: number;
  /** Reported to watchers once the commit is stored. */
  readonly tells?: ResourceChange;
  /**
   * For an INSERT: the row's id must be greater than the ids of all rows stored before the call of commit(),
   * also by other nodes. Otherwise ids of several nodes are in the order of time only to a second or so.
   */
  readonly isLatest?: true;
}

/**
 * Adds amounts to counters, or checks a limit on them: running it with a and then with b equals
 * running it once with a + b, if the other params are equal. It comes after the other statements of
 * its commit, which neither read nor write the same columns. An engine may therefore merge those of
 * several commits, with the sums; if a rule then refuses, each commit is run alone.
 */
export interface Increment extends Statement {
  /** Indexes of the params that are amounts, whole numbers; empty: it only checks. */
  readonly amounts: readonly number[];
}

/** Counters of one row: the amount to add to each column, and the row's id. */
export interface Counter {
  readonly table: string;
  readonly id: number;
  readonly add: Readonly<Record<string, number>>;
}

export function isIncrement(statement: Statement): statement is Increment {
  return 'amounts' in statement;
}

export interface StatementResult {
  readonly changes: number;
  readonly lastRowId: number;
}

/**
 * A commit was rolled back by its own rule: nothing is stored, and it may be built and tried
 * again.
 */
export class CommitRejected extends Error {
  /** Index of the statement that refused. */
  readonly index: number;
  readonly reason: 'expectation' | 'unique' | 'foreign_key' | 'check';

  constructor(index: number, reason: CommitRejected['reason'], detail: string) {
    super(detail);
    this.name = 'CommitRejected';
    this.index = index;
    this.reason = reason;
  }
}

/**
 * The disk or the connection failed during a commit: it may be stored or not. Its data must neither
 * be removed nor be reported as stored. After a disk error no later commit is accepted until a
 * restart.
 */
export class CommitOutcomeUnknown extends AppError {
  constructor(
    detail: string,
    message = 'The store is read-only after a disk error',
    hint = 'Check the disk, then restart Cloudlet',
  ) {
    super('read_only', message, { hint, cause: new Error(detail) });
    this.name = 'CommitOutcomeUnknown';
  }
}

/** Rows may be shared with other callers and must not be modified. */
export interface Reads {
  get<T>(sql: string, ...params: SqlValue[]): Awaitable<T | undefined>;
  all<T>(sql: string, ...params: SqlValue[]): Awaitable<T[]>;
}

export interface Metadata extends Reads {
  /**
   * Stores all statements in one transaction, or none. Resolves once they are on disk. Rejects with
   * CommitRejected (a rule refused; other commits are unaffected), AppError `out_of_space` (nothing stored;
   * recovers by itself when space is available), CommitOutcomeUnknown after an I/O or fsync error, and from
   * then until a restart AppError `read_only` (nothing stored).
   */
  commit(statements: readonly Statement[]): Promise<StatementResult[]>;
  /**
   * Calls `work` with reads that all see one state of the database, as of its first read or a
   * little earlier, with every commit resolved before the call. Otherwise only the results of one
   * query are consistent. Two run at once, others wait; rejects with `overloaded` after 10 s of
   * waiting, or if a read comes after 30 s.
   */
  snapshot<T>(work: (reads: Reads) => Promise<T>): Promise<T>;
  /** Waits for running commits, then closes. Every later call throws. */
  close(): Promise<void>;
}

/** The same reads with another commit function. */
function withCommit(metadata: Metadata, commit: Metadata['commit']): Metadata {
  return {
    get: metadata.get.bind(metadata),
    all: metadata.all.bind(metadata),
    snapshot: metadata.snapshot.bind(metadata),
    close: metadata.close.bind(metadata),
    commit,
  };
}

/**
 * Commits that find the disk full get a second try on the reserved blocks: deletes and the ledger must
 * work at 0 free bytes. New bytes are refused long before, by DiskSpace.assertSpace.
 */
export function withReserve(metadata: Metadata, releaseReserve: () => Promise<boolean>): Metadata {
  return withCommit(metadata, (statements) =>
    metadata.commit(statements).catch(async (error: unknown) => {
      if (isAppError(error, 'out_of_space') && (await releaseReserve())) return metadata.commit(statements);
      throw error;
    }),
  );
}

/** Reports changed resources to watchers after a commit. `tell` must not throw. */
export function withWatchers(metadata: Metadata, tell: (changed: ResourceChange) => void): Metadata {
  return withCommit(metadata, async (statements) => {
    const results = await metadata.commit(statements);
    for (const { tells } of statements) if (tells !== undefined) tell(tells);
    return results;
  });
}
