/** All connections that a child has to its tenant's file, so that a new size limit holds for each. */
import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { EngineLimits } from '../../databases/engine.ts';
import type { Counters, Room } from '../engine-children/child-call.ts';
import { hostRoom } from '../engine-children/host-room.ts';
import type { Sessions } from './authorizer.ts';
import { openTenantFile, setRoom } from './tenant-file.ts';

export class TenantConnections {
  readonly #path: string;
  readonly #open = new Map<DatabaseSync, Sessions>();
  #room: Room;
  /** By which the file could grow when connections were told last. */
  #growthBytes: number;
  /** Handlers add to them. */
  readonly counters: Counters = { connections: 0, statements: 0, rowsReturned: 0, rowsWritten: 0 };
  limits: EngineLimits;

  constructor(path: string, room: Room, limits: EngineLimits) {
    this.#path = path;
    this.#room = room;
    this.#growthBytes = room.sizeLimitBytes;
    this.limits = limits;
  }

  /** A connection more. The caller closes it with close() of here. */
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

  /** Call before anything is written: no connection lets the file grow into what the host keeps free. */
  heedHost(): void {
    // Beyond its own limit a database does not grow anyway: much room is as good as more.
    const growthBytes = Math.min(hostRoom.growthBytes(), this.#room.sizeLimitBytes);
    if (growthBytes === this.#growthBytes) return;
    this.#growthBytes = growthBytes;
    this.#tellRoom();
  }

  #tellRoom(): void {
    for (const [database, sessions] of this.#open) setRoom(database, this.#room, sessions);
  }

  /** Bytes of the log that is not written back yet. */
  logBytes(): number {
    return statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }
}
