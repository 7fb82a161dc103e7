/** SQLite as an engine, through the users' driver. */
import type { EngineDatabase } from '../../databases/engine.ts';
import { type EngineHouse, type NotesClient, testEngine } from '../../testing/engine.conformance.ts';
import { eventually } from '../../testing/eventually.ts';
import { openSqlite, type SqliteHouse } from '../../testing/sqlite-house.ts';

async function open(): Promise<EngineHouse> {
  const house = openSqlite();
  const { engine } = house;
  return {
    engine,
    connect: async (database) => clientOf(house, database),
    crash: async (database) => {
      process.kill(await eventually(() => engine.processOf(database)), 'SIGKILL');
    },
    close: () => house.close(),
    statements: {
      count: (rows) =>
        `WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT ${rows}) SELECT n FROM c`,
      addNote: "INSERT INTO notes VALUES ('by query')",
      wrong: 'SELEC 1',
      endless: 'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c',
    },
  };
}

function clientOf({ run }: SqliteHouse, database: EngineDatabase): NotesClient {
  return {
    prepare: async () => {
      await run(database, 'CREATE TABLE IF NOT EXISTS notes (note TEXT)');
    },
    add: async (note) => {
      await run(database, 'INSERT INTO notes VALUES (?)', note);
    },
    notes: async () =>
      (await run(database, 'SELECT note FROM notes ORDER BY note')).map(([note]) => String(note)),
    clear: async () => {
      await run(database, 'DELETE FROM notes');
    },
    close: async () => {},
  };
}

testEngine('sqlite', open);
