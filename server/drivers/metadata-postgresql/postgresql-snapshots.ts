/** The metadata in PostgreSQL at one moment, as a SQLite database: the format of recovery points. */
import { createReadStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { migrate } from '../../metadata/migrate.ts';
import { migrations } from '../../metadata/migrations/migrations.ts';
import type { Snapshot, Snapshots } from '../../recovery/points/sources.ts';
import { DATABASE_FILE, openReader, openWriter, SqliteReads } from '../metadata-sqlite/connection.ts';
import { connect } from './connections.ts';
import { type CopiedTable, copyToSqlite } from './table-copy.ts';

const READ_BYTES = 2 ** 20;

export interface PostgresqlSnapshotsDeps {
  readonly url: string;
  /** A folder used only for this. */
  readonly work: string;
  /** Throws when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
  readonly clock: { now(): number };
}

export class PostgresqlSnapshots implements Snapshots {
  readonly #deps: PostgresqlSnapshotsDeps;

  constructor(deps: PostgresqlSnapshotsDeps) {
    this.#deps = deps;
  }

  async take(): Promise<Snapshot> {
    const { url, work, assertSpace, clock } = this.#deps;
    await this.sweep();
    await mkdir(work, { mode: 0o700, recursive: true });
    try {
      await inSnapshot(url, async (client) => {
        const { rows } = await client.query<{ bytes: number }>(
          'SELECT pg_database_size(current_database()) AS bytes',
        );
        assertSpace(Number(rows[0]?.bytes ?? 0));
        await writeSqlite(client, work, clock.now());
      });
    } catch (error) {
      await this.sweep();
      throw error;
    }
    const database = openReader(work);
    return {
      reads: new SqliteReads(database),
      bytes: () => createReadStream(join(work, DATABASE_FILE), { highWaterMark: READ_BYTES }),
      remove: async () => {
        database.close();
        await this.sweep();
      },
    };
  }

  async sweep(): Promise<void> {
    await rm(this.#deps.work, { recursive: true, force: true });
  }
}

/** Runs `work` on one snapshot of the database. */
export async function inSnapshot<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connect({ url, onEnd: () => {} });
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Writes `metadata.db` into an empty folder. `nowMs`: ms since 1970. */
export async function writeSqlite(client: pg.Client, folder: string, nowMs: number): Promise<CopiedTable[]> {
  const database = openWriter(folder);
  try {
    migrate(database, migrations, nowMs);
    database.pragma('foreign_keys = OFF');
    return await copyToSqlite(client, database);
  } finally {
    // Checkpoints the log, so that the file is complete.
    database.close();
  }
}
