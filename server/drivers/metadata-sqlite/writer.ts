/**
 * The writer thread: migrates, then stores batches in the order of arrival. It alone waits for
 * fsync.
 */
import { statfsSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import type Database from 'better-sqlite3';
import { migrate } from '../../metadata/migrate.ts';
import { migrations } from '../../metadata/migrations/migrations.ts';
import type { BatchMessage, WriterReply, WriterRequest } from './batch.ts';
import { BatchFailed, type BatchOutcome, BatchRunner, batchFailureOf } from './batch-runner.ts';
import { openWriter } from './connection.ts';

export interface WriterOptions {
  readonly directory: string;
  /** ms since 1970, for the record of applied migrations. */
  readonly nowMs: number;
}

const PAGE_BYTES = 4096;
/** Bytes in the log above which it is checkpointed; fewer on a small file system. */
const CHECKPOINT_BYTES = 16 * 2 ** 20;
/**
 * A checkpoint may need as much space again as new pages in the log. It must fit into the space reserved for
 * a full disk (DiskSpace's reserve, a sixteenth) with a margin.
 */
const CHECKPOINT_SHARE = 64;
/** 1 MiB at a time, while less than an eighth of the file system is free. */
const SHRINK_PAGES = 256;
const SHORT_SHARE = 8;

interface LogState {
  readonly busy: number;
  readonly log: number;
  readonly checkpointed: number;
}

/** Maintenance between batches. Its queries run after each batch, so they are prepared once. */
interface Upkeep {
  readonly database: Database.Database;
  readonly directory: string;
  /** Pages in the log above which it is checkpointed. */
  readonly duePages: number;
  readonly logState: Database.Statement;
  readonly freePages: Database.Statement;
  readonly send: (reply: WriterReply) => void;
}

function upkeepOf(
  database: Database.Database,
  directory: string,
  send: (reply: WriterReply) => void,
): Upkeep {
  const { blocks, bsize } = statfsSync(directory);
  const duePages = Math.min(CHECKPOINT_BYTES, (blocks * bsize) / CHECKPOINT_SHARE) / PAGE_BYTES;
  const logState = database.prepare('PRAGMA wal_checkpoint(NOOP)');
  const freePages = database.prepare('PRAGMA freelist_count').pluck();
  return { database, directory, duePages, logState, freePages, send };
}

/** Checkpoints a long log. Runs after the reply, so that no commit waits for it. */
function checkpointWhenDue({ database, duePages, logState, send }: Upkeep): void {
  try {
    const before = logState.get() as LogState | undefined;
    if (before === undefined || before.log - before.checkpointed < duePages) return;
    const [after] = database.pragma('wal_checkpoint(PASSIVE)') as LogState[];
    const pages = after === undefined ? 0 : after.log - after.checkpointed;
    send({ kind: 'checkpoint', logBytes: pages * PAGE_BYTES, error: null });
  } catch (error) {
    // No acknowledged commit is at risk, because the log still has it; but the disk refuses writes.
    reportFailure(error, send);
  }
}

/** A full disk is reported by the commit that fails; the next one tries to checkpoint again. */
function reportFailure(error: unknown, send: (reply: WriterReply) => void): void {
  if (batchFailureOf(error)?.reason !== 'full')
    send({ kind: 'checkpoint', logBytes: 0, error: String(error) });
}

/**
 * Returns free pages to the file system if that is short of space: nothing else can use the space
 * of deleted rows until then. A little each time, after the reply.
 */
function shrinkWhenShort({ database, directory, freePages, send }: Upkeep): void {
  const free = freePages.get() as number;
  if (free < SHRINK_PAGES) return;
  const { bavail, blocks } = statfsSync(directory);
  if (bavail > blocks / SHORT_SHARE) return;
  try {
    database.pragma(`incremental_vacuum(${SHRINK_PAGES})`);
    database.pragma('wal_checkpoint(TRUNCATE)');
  } catch (error) {
    reportFailure(error, send);
  }
}

function open(options: WriterOptions): Database.Database {
  const database = openWriter(options.directory);
  try {
    migrate(database, migrations, options.nowMs);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * On a full disk the log is checkpointed and the batch tried once more: the log then starts again
 * in its existing blocks. Without this a delete would need space for a log that keeps growing.
 */
function runWithWriteBack(
  runner: BatchRunner,
  database: Database.Database,
  batch: BatchMessage,
): BatchOutcome | null {
  try {
    return runner.run(batch);
  } catch (error) {
    if (!(error instanceof BatchFailed) || error.failure.reason !== 'full' || !writeBack(database))
      throw error;
    // The runner knows the SQL texts of this batch already.
    return runner.run({ ...batch, resetSql: false, newSql: [] });
  }
}

/** True when the whole log is in the database. */
function writeBack(database: Database.Database): boolean {
  try {
    const [after] = database.pragma('wal_checkpoint(PASSIVE)') as LogState[];
    return after !== undefined && after.log === after.checkpointed;
  } catch (error) {
    // The disk is full here too, and nothing is lost. Any other failure ends the batch.
    if (batchFailureOf(error)?.reason === 'full') return false;
    throw error;
  }
}

function serve(database: Database.Database, directory: string, port: NonNullable<typeof parentPort>): void {
  const runner = new BatchRunner(database);
  const send = (reply: WriterReply) => port.postMessage(reply);
  const upkeep = upkeepOf(database, directory, send);
  let broken = false;
  port.on('message', (request: WriterRequest) => {
    if (request.kind === 'close') {
      // A broken database is not closed: closing would write its log back with an fsync that already failed
      // once.
      if (!broken) database.close();
      port.close();
      return;
    }
    try {
      const outcome = runWithWriteBack(runner, database, request);
      if (outcome === null) return send({ kind: 'refused' });
      const { results, failures } = outcome;
      const packed = Float64Array.from(results);
      port.postMessage({ kind: 'stored', results: packed, failures } satisfies WriterReply, [packed.buffer]);
      checkpointWhenDue(upkeep);
      shrinkWhenShort(upkeep);
    } catch (error) {
      const failure =
        error instanceof BatchFailed ? error.failure : ({ reason: 'broken', detail: String(error) } as const);
      broken ||= failure.reason === 'broken';
      send({ kind: 'failed', failure });
    }
  });
}

function start(port: NonNullable<typeof parentPort>): void {
  try {
    const options = workerData as WriterOptions;
    const database = open(options);
    port.postMessage({ kind: 'ready' } satisfies WriterReply);
    serve(database, options.directory, port);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    port.postMessage({ kind: 'unusable', message } satisfies WriterReply);
    port.close();
  }
}

if (parentPort === null) throw new Error('writer.ts is a worker thread');
start(parentPort);
