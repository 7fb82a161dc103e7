/** What the handlers of a SQLite child share. */
import type { DatabaseSync } from 'node:sqlite';
import type { EngineLimits } from '../../databases/engine.ts';
import type { Counters } from '../engine-children/child-call.ts';

export interface TenantDatabase {
  readonly limits: EngineLimits;
  /** Handlers add to them. */
  readonly counters: Counters;
  /** A connection more. The caller closes it with close() of here. */
  open(): DatabaseSync;
  close(database: DatabaseSync): void;
  /** Bytes of the log that is not written back yet. */
  logBytes(): number;
}
