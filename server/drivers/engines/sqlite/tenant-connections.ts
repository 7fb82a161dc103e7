/** All connections of a child to its tenant's file, so that a new size limit applies to each. */
import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { hostSpace } from '../../../../libs/sqlite/index.ts';
import type { EngineLimits } from '../../../databases/engine.ts';
import type { Counters, SizeLimit } from '../../engine-children/child-call.ts';
import type { Sessions } from './authorizer.ts';
import { openTenantFile, setSizeLimit } from './tenant-file.ts';

export class TenantConnections {
  readonly #path: string;
  readonly #open = new Map<DatabaseSync, Sessions>();
  #sizeLimit: SizeLimit;
  /** Growth limit last set on connections. */
  #growthBytes: number;
  /** Incremented by handlers. */
  readonly counters: Counters = { connections: 0, statements: 0, rowsReturned: 0, rowsWritten: 0 };
  limits: EngineLimits;

  constructor(path: string, sizeLimit: SizeLimit, limits: EngineLimits) {
    this.#path = path;
    this.#sizeLimit = sizeLimit;
    this.#growthBytes = sizeLimit.sizeLimitBytes;
    this.limits = limits;
  }

  /** Opens another connection. Close it with close() of this object. */
  open(): DatabaseSync {
    return this.openFor('own', false);
  }

  openFor(sessions: Sessions, queryOnly: boolean): DatabaseSync {
    this.heedHost();
    const database = openTenantFile(this.#path, { ...this.#sizeLimit, sessions, queryOnly });
    this.#open.set(database, sessions);
    return database;
  }

  close(database: DatabaseSync): void {
    this.#open.delete(database);
    database.close();
  }

  closeAll(): void {
    for (const database of this.#open.keys()) database.close();
    this.#open.clear();
  }

  setSizeLimit(sizeLimit: SizeLimit, limits: EngineLimits): void {
    this.#sizeLimit = sizeLimit;
    this.limits = limits;
    this.#applySizeLimit();
  }

  /** Call before each write: no connection may let the file grow into the host's reserve. */
  heedHost(): void {
    // Capped at the database's own limit, so that it changes only when it matters.
    const growthBytes = Math.min(hostSpace.growthBytes(), this.#sizeLimit.sizeLimitBytes);
    if (growthBytes === this.#growthBytes) return;
    this.#growthBytes = growthBytes;
    this.#applySizeLimit();
  }

  #applySizeLimit(): void {
    for (const [database, sessions] of this.#open) setSizeLimit(database, this.#sizeLimit, sessions);
  }

  /** Size of the log that is not checkpointed yet, bytes. */
  logBytes(): number {
    return statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }
}
