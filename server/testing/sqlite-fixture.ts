/** A SQLite engine in its own folder, for tests. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { EngineDatabase, Query } from '../databases/engine.ts';
import { ChildSlots } from '../drivers/engine-children/child-slots.ts';
import { SqliteEngine, type SqliteEngineOptions } from '../drivers/engines/sqlite/sqlite-engine.ts';
import { systemClock } from '../platform/clock.ts';
import { newDatabase } from './new-database.ts';
import { noUsers, testUidBase } from './own-ground.ts';

/** How sqlite3's `.dump` writes the parts of `CREATE VIRTUAL TABLE f USING fts5(t)` with one row, 'word'. */
export const FULL_TEXT_PARTS = `CREATE TABLE IF NOT EXISTS 'f_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO f_data VALUES(1,X'0101');
INSERT INTO f_data VALUES(10,X'000000000101010001010101');
INSERT INTO f_data VALUES(137438953473,X'0000000d0530776f726401020204');
CREATE TABLE IF NOT EXISTS 'f_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
INSERT INTO f_idx VALUES(1,X'',2);
CREATE TABLE IF NOT EXISTS 'f_content'(id INTEGER PRIMARY KEY, c0);
INSERT INTO f_content VALUES(1,'word');
CREATE TABLE IF NOT EXISTS 'f_docsize'(id INTEGER PRIMARY KEY, sz BLOB);
INSERT INTO f_docsize VALUES(1,X'01');
CREATE TABLE IF NOT EXISTS 'f_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO f_config VALUES('version',4);
`;

export interface SqliteFixture {
  readonly engine: SqliteEngine;
  readonly folder: string;
  /** An existing database. */
  make(about?: Partial<EngineDatabase>): Promise<EngineDatabase>;
  /** Runs a statement that may write; returns its rows. */
  run(
    database: EngineDatabase,
    statement: string,
    ...params: unknown[]
  ): Promise<readonly (readonly unknown[])[]>;
  close(): Promise<void>;
}

export function openSqlite(options: Partial<SqliteEngineOptions> = {}): SqliteFixture {
  const data = mkdtempSync(join(tmpdir(), 'cloudlet-sqlite-'));
  const folder = options.folder ?? join(data, 'databases', 'sqlite');
  const engine = new SqliteEngine({
    clock: systemClock,
    log: pino({ level: 'silent' }),
    folder,
    ground: data,
    users: noUsers === null ? { first: testUidBase(), count: 100_000 } : null,
    slots: new ChildSlots(6),
    idleMs: 60_000,
    keepFreeBytes: () => 0,
    onFault: () => {},
    address: () => 'http://127.0.0.1:9000',
    ...options,
  });
  const signal = new AbortController().signal;
  const bounds: Omit<Query, 'statement' | 'params'> = {
    readOnly: false,
    maxRows: 100_000,
    maxBytes: 2 ** 26,
    timeoutMs: 120_000,
    signal,
  };
  return {
    engine,
    folder,
    make: async (about) => {
      const database = newDatabase(about);
      await engine.provision(database, 'unused');
      return database;
    },
    run: async (database, statement, ...params) =>
      (await engine.query(database, { statement, params, ...bounds })).rows.toJSON(),
    close: async () => {
      await engine.close();
      rmSync(data, { recursive: true });
    },
  };
}
