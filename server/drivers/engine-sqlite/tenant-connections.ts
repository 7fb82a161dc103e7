/** All connections of a child to its tenant's file, so that a new size limit applies to each. */
import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { EngineLimits } from '../../databases/engine.ts';
import type { Counters, Room } from '../engine-children/child-call.ts';
import { hostSpace } from '../engine-children/host-space.ts';
import type { Sessions } from './authorizer.ts';
import { openTenantFile, setRoom } from './tenant-file.ts';

export class TenantConnections {
  readonly #path: string;
  readonly #open = new Map<DatabaseSync, Sessions>();
  #room: Room;
  /** Growth limit that connections were last set to. */
  #growthBytes: number;
  /** Incremented by handlers. */
  readonly counters: Counters = { connections: 0, statements: 0, rowsReturned: 0, rowsWritten: 0 };
  limits: EngineLimits;

  constructor(path: string, room: Room, limits: EngineLimits) {
    this.#path = path;
    this.#room = room;
    this.#growthBytes = room.sizeLimitBytes;
    this.limits = limits;
  }

  /** Opens another connection. Close it with close() of this object. */
  open(): DatabaseSync {
    return this.openFor('own', false);
  }

  openFor(sessions: Sessions, queryOnly: boolean): DatabaseSync {
    this.heedHost();
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
    this.#tellRoom();
  }

  /** Call before each write: no connection may let the file grow into the host's reserve. */
  heedHost(): void {
    // Capped at the database's own limit, so that it changes only when it matters.
    const growthBytes = Math.min(hostSpace.growthBytes(), this.#room.sizeLimitBytes);
    if (growthBytes === this.#growthBytes) return;
    this.#growthBytes = growthBytes;
    this.#tellRoom();
  }

  #tellRoom(): void {
    for (const [database, sessions] of this.#open) setRoom(database, this.#room, sessions);
  }

  /** Size of the log that is not checkpointed yet, bytes. */
  logBytes(): number {
    return statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }
}
