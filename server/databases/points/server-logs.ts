/**
 * Continuous archiving of an engine's servers: each account's server keeps its log until it is
 * archived, within a limit, and is recovered from a base copy and the log since. Missing if an
 * engine does not support it.
 */
import type { BaseCopy, BaseFacts } from '../../recovery/logs/log-lines.ts';
import type { Dump, EngineDatabase } from '../engine.ts';

export interface LogState {
  /** The line for which the server keeps its log; null: none. */
  readonly line: string | null;
  /** The oldest position that it still has. */
  readonly from: bigint;
  /** Durable up to this position; commits are from this time or earlier (ms, server clock). */
  readonly to: bigint;
  readonly at: number;
}

/** A running server of an account. Calls reject if it ends. */
export interface LogServer {
  readonly accountId: number;
  /** null: it was started without archiving; the next start changes that. */
  state(): Promise<LogState | null>;
  /** Keeps its log from now on, only for this line. */
  begin(line: string): Promise<LogState>;
  /** Bytes of the log from `from`, at least one, up to `to`. */
  read(from: bigint, to: bigint): Promise<Buffer>;
  /** The server may discard its log before this position. */
  release(to: bigint): Promise<void>;
  /** A copy of its files while it runs. Throws DumpsMissing. */
  copy(signal: AbortSignal): Promise<BaseCopy>;
}

export interface ServerCopy {
  readonly accountId: number;
  readonly facts: BaseFacts;
  /** Size of the base copy. */
  readonly sizeBytes: number;
  base(): AsyncIterable<Uint8Array>;
  /** The log from the start of the base copy on, without gaps; ranges may overlap. */
  log(): AsyncIterable<{ readonly from: bigint; readonly bytes: Buffer }>;
  readonly logBytes: number;
}

/** Contents of a server that was recovered to the end of its log; every row was read. */
export interface ServerTrial {
  readonly databases: number;
  readonly tables: number;
  readonly rows: number;
  /** Position up to which the log was replayed. */
  readonly to: bigint;
}

export interface ServerLogs {
  /** Running servers. */
  running(): readonly LogServer[];
  /** Runs `work` with the server running. Throws `engine_unavailable`. */
  using<T>(accountId: number, work: (server: LogServer) => Promise<T>): Promise<T>;
  /** `work` runs before an idle server is stopped. */
  onSleep(work: (server: LogServer) => Promise<void>): void;
  /** Accounts that have a server, running or not, with the sum of the size limits of its databases, bytes. */
  accounts(): ReadonlyMap<number, number>;
  /** Runs a copy of the server as of `at`, ms, until one of its databases is dumped. */
  dumpAt(
    copy: ServerCopy,
    of: { readonly database: EngineDatabase; readonly at: number; readonly signal: AbortSignal },
  ): Promise<Dump>;
  /** Runs a copy of the server as of the end of its log, and reads all of its databases. */
  tryToEnd(copy: ServerCopy, signal: AbortSignal): Promise<ServerTrial>;
}
