/** The database that sessions work on, as the caller opens it. */
import type { DatabaseSync } from 'node:sqlite';

/** Totals since the start, raised by sessions. */
export interface Counters {
  /** Open streams. */
  connections: number;
  statements: number;
  rowsReturned: number;
  rowsWritten: number;
}

export interface HranaDatabase {
  readonly counters: Counters;
  /** May change while sessions are open. */
  readonly limits: { readonly connections: number };
  open(): DatabaseSync;
  close(database: DatabaseSync): void;
  /** Called before each write. */
  heedHost(): void;
  /** Size of the log that is not checkpointed yet, bytes. */
  logBytes(): number;
}
