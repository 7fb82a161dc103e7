/**
 * Metadata in one SQLite file. Commits wait on the main thread while the writer stores a batch, and
 * then form the next batch: one fsync for all of them. Reads run synchronously, on a connection
 * that cannot write.
 */
import { Worker } from 'node:worker_threads';
import Database from 'better-sqlite3';
import { CommitQueue, storeBusy, type WaitingCommit } from '../../metadata/commit-queue.ts';
import {
  CommitOutcomeUnknown,
  CommitRejected,
  type Metadata,
  type Reads,
  type SqlValue,
  type Statement,
  type StatementResult,
} from '../../metadata/metadata.ts';
import { type OpenSnapshot, ReadSnapshots } from '../../metadata/read-snapshots.ts';
import { StoreFigures } from '../../metadata/store-figures.ts';
import { type Alarms, CHECK_DISK } from '../../platform/alarms.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { programFile } from '../../platform/program-files.ts';
import { type BatchFailure, packBatch, SqlNumbers, type WriterReply, type WriterRequest } from './batch.ts';
import { openReader, openSnapshot, SqliteReads } from './connection.ts';
import type { WriterOptions } from './writer.ts';

export interface SqliteMetadataDeps {
  /** Contains metadata.db and its log. Created if missing. */
  readonly directory: string;
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly figures?: StoreFigures;
}

/** Name of the writer thread, as Linux shows it. */
export const WRITER_NAME = 'metadata';
const MAX_LOG_BYTES = 256 * 2 ** 20;

export class SqliteMetadata implements Metadata {
  readonly #writer: Worker;
  readonly #reader: Database.Database;
  readonly #reads: SqliteReads;
  readonly #snapshots: ReadSnapshots;
  readonly #beginRead: Database.Statement;
  readonly #endRead: Database.Statement;
  readonly #alarms: Alarms;
  readonly #numbers = new SqlNumbers();
  readonly #queue: CommitQueue;
  readonly #figures: StoreFigures;
  #snapshotOpen = false;
  /**
   * The last row of each query in this snapshot: concurrent requests (decisions/0013) all read
   * their bucket and its owner's credit, mostly the same.
   */
  readonly #seen = new Map<string, { readonly params: readonly SqlValue[]; readonly row: unknown }>();
  #broken: string | null = null;
  #closing: Promise<void> | null = null;

  private constructor(writer: Worker, reader: Database.Database, deps: SqliteMetadataDeps) {
    const { directory, alarms, clock, figures = new StoreFigures() } = deps;
    this.#writer = writer;
    this.#queue = new CommitQueue({ clock, figures, send: () => this.#postInFlight({ isolated: false }) });
    this.#figures = figures;
    this.#reader = reader;
    this.#reads = new SqliteReads(reader);
    this.#snapshots = new ReadSnapshots(() => this.#openSnapshot(directory));
    this.#beginRead = reader.prepare('BEGIN');
    this.#endRead = reader.prepare('COMMIT');
    this.#alarms = alarms;
    writer.on('message', (reply: WriterReply) => this.#receive(reply));
    writer.on('error', (error) => this.#break(`the writer thread died: ${String(error)}`));
    writer.on('exit', () => {
      if (this.#closing === null) this.#break('the writer thread ended');
    });
  }

  /**
   * Opens or creates the database and brings it to the newest schema. Rejects with an Error of one clear
   * line.
   */
  static async open(deps: SqliteMetadataDeps): Promise<SqliteMetadata> {
    const options: WriterOptions = { directory: deps.directory, nowMs: deps.clock.now() };
    const writer = new Worker(programFile('drivers/metadata-sqlite/writer'), {
      workerData: options,
      name: WRITER_NAME,
      // Not the flags of the process: --input-type and the like are refused for a file.
      execArgv: [],
    });
    await new Promise<void>((resolve, reject) => {
      writer.once('error', reject);
      writer.once('message', (reply: WriterReply) => {
        writer.off('error', reject);
        if (reply.kind === 'unusable') reject(new Error(reply.message));
        else resolve();
      });
    });
    try {
      return new SqliteMetadata(writer, openReader(deps.directory), deps);
    } catch (error) {
      await writer.terminate();
      throw error;
    }
  }

  get<T>(sql: string, ...params: SqlValue[]): T | undefined {
    return this.#read(() => {
      const last = this.#seen.get(sql);
      if (last && areEqual(last.params, params)) return last.row as T | undefined;
      const row = this.#reads.get<T>(sql, ...params);
      this.#seen.set(sql, { params, row });
      return row;
    });
  }

  all<T>(sql: string, ...params: SqlValue[]): T[] {
    return this.#read(() => this.#reads.all<T>(sql, ...params));
  }

  async snapshot<T>(work: (reads: Reads) => Promise<T>): Promise<T> {
    this.#assertOpen();
    return this.#snapshots.run(work);
  }

  #openSnapshot(directory: string): OpenSnapshot {
    this.#assertOpen();
    const database = openSnapshot(directory);
    const reads = new SqliteReads(database);
    const checked = <T>(work: () => T): T => {
      try {
        return work();
      } catch (error) {
        throw this.#readError(error);
      }
    };
    return {
      reads: {
        get: <T>(sql: string, ...params: SqlValue[]) => checked(() => reads.get<T>(sql, ...params)),
        all: <T>(sql: string, ...params: SqlValue[]) => checked(() => reads.all<T>(sql, ...params)),
      },
      end: () => {
        database.close();
      },
    };
  }

  #assertOpen(): void {
    if (this.#closing !== null) throw new AppError('shutting_down', 'The metadata store is closed');
  }

  #read<T>(work: () => T): T {
    this.#assertOpen();
    try {
      this.#shareSnapshot();
      return work();
    } catch (error) {
      throw this.#readError(error);
    }
  }

  commit(statements: readonly Statement[]): Promise<StatementResult[]> {
    const refusal = this.#refusal();
    if (refusal !== null) return Promise.reject(refusal);
    return this.#queue.add(statements);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#endSnapshot();
    await this.#queue.idle();
    if (this.#broken !== null) {
      // While the reader is open the writer is not the last connection, so that closing it does not
      // checkpoint the log.
      await this.#writer.terminate();
      this.#reader.close();
      return;
    }
    this.#reader.close();
    const ended = new Promise((resolve) => this.#writer.once('exit', resolve));
    this.#post({ kind: 'close' });
    await ended;
  }

  #refusal(): AppError | null {
    if (this.#closing !== null) return new AppError('shutting_down', 'The metadata store is closed');
    if (this.#broken !== null) return readOnly(this.#broken);
    return null;
  }

  /**
   * All reads of one turn of the event loop share a transaction, unless a commit is answered in between,
   * because its locks and checks for changed pages cost more than a read.
   */
  #shareSnapshot(): void {
    if (this.#snapshotOpen) return;
    this.#beginRead.run();
    this.#snapshotOpen = true;
    setImmediate(() => this.#endSnapshot());
  }

  /** The next read sees every commit that is stored by now. */
  #endSnapshot(): void {
    if (!this.#snapshotOpen) return;
    this.#snapshotOpen = false;
    this.#seen.clear();
    // A disk error has ended it already.
    if (this.#reader.inTransaction) this.#endRead.run();
  }

  #readError(error: unknown): unknown {
    if (!(error instanceof Database.SqliteError)) return error;
    if (/^SQLITE_(CORRUPT|NOTADB|IOERR)/.test(error.code)) {
      const detail = `Reading the metadata database failed (${error.code})`;
      const fix = `${CHECK_DISK}; if it persists, restore a recovery point (\`cloudlet recovery restore\`)`;
      this.#alarms.raise('metadata_read_failed', detail, fix);
      return new AppError('data_corrupted', 'Reading the metadata database failed', { cause: error });
    }
    return error.code.startsWith('SQLITE_BUSY') ? storeBusy(error.message) : error;
  }

  #postInFlight({ isolated }: { isolated: boolean }): void {
    const commits = this.#queue.inFlight.map((waiting) => waiting.statements);
    const message = packBatch(this.#numbers, commits, { isolated });
    this.#post(message, [message.bytes]);
  }

  #post(request: WriterRequest, transfer: ArrayBuffer[] = []): void {
    this.#writer.postMessage(request, transfer);
  }

  #receive(reply: WriterReply): void {
    if (reply.kind === 'checkpoint') this.#noteCheckpoint(reply.logBytes, reply.error);
    if (reply.kind === 'refused') {
      this.#figures.retries++;
      this.#postInFlight({ isolated: true });
    }
    if (reply.kind !== 'stored' && reply.kind !== 'failed') return;
    this.#endSnapshot();
    const batch = this.#queue.inFlight;
    if (reply.kind === 'stored') this.#resolve(batch, reply);
    else this.#fail(batch, reply.failure);
    this.#queue.done();
  }

  #resolve(batch: readonly WaitingCommit[], reply: WriterReply & { kind: 'stored' }): void {
    this.#alarms.clear('metadata_out_of_space');
    const failures = new Map(reply.failures.map((failure) => [failure.commit, failure]));
    let at = 0;
    for (const [commit, waiting] of batch.entries()) {
      const failure = failures.get(commit);
      if (failure === undefined) {
        const results: StatementResult[] = [];
        for (let i = 0; i < waiting.statements.length; i++) {
          results.push({ changes: reply.results[at++] ?? 0, lastRowId: reply.results[at++] ?? 0 });
        }
        waiting.resolve(results);
      } else if (failure.reason === 'fault') {
        const cause = new Error(`statement ${failure.index}: ${failure.detail}`);
        waiting.reject(new AppError('internal_error', 'A metadata statement failed', { cause }));
      } else waiting.reject(new CommitRejected(failure.index, failure.reason, failure.detail));
    }
  }

  #fail(batch: readonly WaitingCommit[], failure: BatchFailure): void {
    if (failure.reason === 'broken') {
      this.#break(failure.detail);
      return;
    }
    if (failure.reason === 'full') {
      const fix = 'Free up space on the disk of the data directory; writes resume automatically';
      this.#alarms.raise('metadata_out_of_space', 'The disk of the metadata database is full', fix);
    }
    for (const waiting of batch) {
      waiting.reject(failure.reason === 'full' ? outOfSpace(failure.detail) : storeBusy(failure.detail));
    }
  }

  /**
   * Nothing is written from now on: after a failed fsync the content of the disk is unknown, and a
   * second one may wrongly succeed.
   */
  #break(detail: string): void {
    if (this.#broken === null) {
      this.#broken = detail;
      this.#alarms.raise(
        'metadata_write_failed',
        `Writing the metadata database failed (${detail}); it is read-only until a restart`,
        CHECK_DISK,
      );
    }
    for (const lost of this.#queue.takeAll()) lost.reject(new CommitOutcomeUnknown(detail));
  }

  #noteCheckpoint(logBytes: number, error: string | null): void {
    if (error !== null) {
      const detail = `The checkpoint of the metadata database failed (${error})`;
      this.#alarms.raise('metadata_log_stuck', detail, CHECK_DISK);
    } else if (logBytes > MAX_LOG_BYTES) {
      const mebibytes = Math.round(logBytes / 2 ** 20);
      this.#alarms.raise(
        'metadata_log_stuck',
        `The metadata log has grown to ${mebibytes} MiB: a reader prevents checkpoints`,
        'Stop programs that read the database, such as `cloudlet ledger verify`, or restart Cloudlet',
      );
    } else this.#alarms.clear('metadata_log_stuck');
  }
}

function areEqual(some: readonly SqlValue[], others: readonly SqlValue[]): boolean {
  return some.length === others.length && some.every((param, i) => param === others[i]);
}

function readOnly(detail: string): AppError {
  const hint = 'Check the disk, then restart Cloudlet';
  return new AppError('read_only', 'The store is read-only after a disk error', {
    hint,
    cause: new Error(detail),
  });
}

function outOfSpace(detail: string): AppError {
  const hint = 'Free up space on the disk of the data directory';
  return new AppError('out_of_space', 'The disk is full; nothing was stored', {
    hint,
    cause: new Error(detail),
  });
}
