/** Connection pool of one database, up to its limit; connections are reused by later streams. */
import type { DatabaseSync } from 'node:sqlite';
import { CompiledStatements } from './compiled.ts';
import type { HranaDatabase } from './database.ts';
import { HranaError } from './error.ts';

export interface Connection {
  readonly db: DatabaseSync;
  readonly statements: CompiledStatements;
  /** Settings were changed that the next stream must not see. */
  isTouched: boolean;
}

export interface ConnectionsDeps {
  readonly database: HranaDatabase;
  /** How long a stream waits for a connection. */
  readonly waitMs: number;
  /** Takes a connection from a stream that does not need it; false if there is none. */
  readonly reclaim: () => boolean;
}

/** Idle connections kept. */
const KEPT = 8;

export class Connections {
  readonly #deps: ConnectionsDeps;
  readonly #free: Connection[] = [];
  readonly #waiting = new Set<(connection: Connection) => void>();
  #count = 0;

  constructor(deps: ConnectionsDeps) {
    this.#deps = deps;
  }

  /** Throws HranaError `TOO_MANY_STREAMS` if none becomes free in time. */
  take(): Connection | Promise<Connection> {
    const found = this.#free.pop();
    if (found !== undefined) return found;
    if (this.#mayOpen()) return this.#open();
    if (this.#deps.reclaim()) return this.take();
    return new Promise((resolve, reject) => {
      const give = (connection: Connection) => {
        clearTimeout(timer);
        resolve(connection);
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(give);
        reject(tooMany(this.#deps.database.limits.connections));
      }, this.#deps.waitMs);
      this.#waiting.add(give);
    });
  }

  /** Returns a connection, rolling back its transaction. */
  giveBack(connection: Connection): void {
    const { db, isTouched } = connection;
    try {
      if (db.isTransaction) db.exec('ROLLBACK');
      if (!isTouched && this.#free.length < KEPT) this.#free.push(connection);
      else this.#close(db);
    } catch {
      this.#close(db);
    }
    this.#serve();
  }

  /** Serves the queue with connections of streams that no longer need one. */
  serveWaiting(): void {
    while (this.#waiting.size > 0 && this.#deps.reclaim());
  }

  /** Checkpoints the log. False when a reader or writer prevents it. */
  writeLogBack(): boolean {
    const connection = this.#free.pop() ?? this.#open();
    const { busy } = connection.db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() ?? {};
    this.giveBack(connection);
    return busy === 0;
  }

  #close(db: DatabaseSync): void {
    this.#count--;
    this.#deps.database.close(db);
  }

  #mayOpen(): boolean {
    return this.#count < this.#deps.database.limits.connections;
  }

  #open(): Connection {
    const db = this.#deps.database.open();
    this.#count++;
    return { db, statements: new CompiledStatements(db), isTouched: false };
  }

  #serve(): void {
    const [give] = this.#waiting;
    if (give === undefined) return;
    const connection = this.#free.pop() ?? (this.#mayOpen() ? this.#open() : undefined);
    if (connection === undefined) return;
    this.#waiting.delete(give);
    give(connection);
  }
}

function tooMany(max: number): HranaError {
  return new HranaError(
    'TOO_MANY_STREAMS',
    `All ${max} connections of this database are in transactions: end some, or use shorter ones`,
  );
}
