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
