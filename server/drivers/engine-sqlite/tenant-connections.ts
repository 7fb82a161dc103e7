/** All connections that a child has to its tenant's file, so that a new size limit holds for each. */
import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { EngineLimits } from '../../databases/engine.ts';
import type { Counters, Room } from '../engine-children/child-call.ts';
import type { Sessions } from './authorizer.ts';
import { openTenantFile, setRoom } from './tenant-file.ts';

export class TenantConnections {
  readonly #path: string;
  readonly #open = new Map<DatabaseSync, Sessions>();
  #room: Room;
  /** Handlers add to them. */
  readonly counters: Counters = { connections: 0, statements: 0, rowsReturned: 0, rowsWritten: 0 };
  limits: EngineLimits;

  constructor(path: string, room: Room, limits: EngineLimits) {
    this.#path = path;
    this.#room = room;
    this.limits = limits;
  }

  /** A connection more. The caller closes it with close() of here. */
  open(): DatabaseSync {
    return this.openFor('own', false);
  }

  openFor(sessions: Sessions, queryOnly: boolean): DatabaseSync {
    const database = openTenantFile(this.#path, { ...this.#room, sessions, queryOnly });
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

  setRoom(room: Room, limits: EngineLimits): void {
    this.#room = room;
    this.limits = limits;
    for (const [database, sessions] of this.#open) setRoom(database, room, sessions);
  }

  /** Bytes of the log that is not written back yet. */
  logBytes(): number {
    return statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }
}
