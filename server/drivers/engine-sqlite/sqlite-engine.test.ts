/** SQLite as an engine, through the users' driver, and what it keeps tenants from. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { systemClock } from '../../clock.ts';
import type { EngineDatabase } from '../../databases/engine.ts';
import { type EngineHouse, type NotesClient, testEngine } from '../../testing/engine.conformance.ts';
import { eventually } from '../../testing/eventually.ts';
import { testUidBase } from '../../testing/own-ground.ts';
import { SqliteEngine } from './sqlite-engine.ts';

async function open(): Promise<EngineHouse> {
  const data = mkdtempSync(join(tmpdir(), 'cloudlet-sqlite-'));
  const engine = new SqliteEngine({
    clock: systemClock,
    log: pino({ level: 'silent' }),
    folder: join(data, 'databases', 'sqlite'),
    users: process.getuid?.() === 0 ? { first: testUidBase(), count: 1000 } : null,
    maxChildren: 4,
    idleMs: 60_000,
    address: () => 'http://127.0.0.1:9000',
  });
  return {
    engine,
    connect: async (database) => clientOf(engine, database),
    crash: async (database) => {
      process.kill(await eventually(() => engine.processOf(database)), 'SIGKILL');
    },
    close: async () => {
      await engine.close();
      rmSync(data, { recursive: true });
    },
    statements: {
      count: (rows) =>
        `WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT ${rows}) SELECT n FROM c`,
      addNote: "INSERT INTO notes VALUES ('by query')",
      wrong: 'SELEC 1',
      endless: 'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c',
    },
  };
}

function clientOf(engine: SqliteEngine, database: EngineDatabase): NotesClient {
  const run = async (statement: string, ...params: string[]) => {
    const signal = new AbortController().signal;
    const bounds = { maxRows: 100_000, maxBytes: 2 ** 26, timeoutMs: 20_000 };
    const { rows } = await engine.query(database, { statement, params, readOnly: false, ...bounds, signal });
    return rows;
  };
  return {
    prepare: async () => {
      await run('CREATE TABLE IF NOT EXISTS notes (note TEXT)');
    },
    add: async (note) => {
      await run('INSERT INTO notes VALUES (?)', note);
    },
    notes: async () => (await run('SELECT note FROM notes ORDER BY note')).map(([note]) => String(note)),
    clear: async () => {
      await run('DELETE FROM notes');
    },
    close: async () => {},
  };
}

testEngine('sqlite', open);
