/** PostgreSQL's part of the engine suite: the users' driver and its statements. */
import { Pool } from 'pg';
import type { Engine, EngineDatabase } from '../databases/engine.ts';
import type { EngineFixture, NotesClient } from './engine.conformance.ts';
import { engineFixture, type ServerFixture } from './server-fixture.ts';

/** `crash`, `close`: of the server; clients are closed first. */
export function postgresqlEngineFixture(
  server: Pick<ServerFixture<Engine>, 'engine' | 'close'> & Pick<EngineFixture, 'crash'>,
): EngineFixture {
  return engineFixture({
    ...server,
    notesIn,
    statements: {
      count: (rows) => `SELECT generate_series(1, ${rows}) AS n`,
      addNote: "INSERT INTO notes VALUES ('by query')",
      wrong: 'SELEC 1',
      endless: 'SELECT count(*) FROM generate_series(1, 1000000000000)',
    },
  });
}

const ENDED_BY_ADMIN = '57P01';

async function notesIn(engine: Engine, database: EngineDatabase, password: string): Promise<NotesClient> {
  const { uri } = await engine.endpoint(database);
  const pool = new Pool({ connectionString: uri(password), max: 4 });
  pool.on('connect', (client) => client.on('error', () => {}));
  pool.on('error', () => {});
  // A session ended by the administrator has had no effect, so the statement can be retried.
  const run = (text: string, values?: unknown[]) =>
    pool.query(text, values).catch((error) => {
      if (error.code !== ENDED_BY_ADMIN) throw error;
      return pool.query(text, values);
    });
  return {
    prepare: async () => {
      // Otherwise notes of one letter would take no space.
      const plain = 'ALTER TABLE notes ALTER note SET STORAGE EXTERNAL';
      await run(`CREATE TABLE IF NOT EXISTS notes (note text); ${plain}`);
    },
    add: async (note) => {
      await run('INSERT INTO notes VALUES ($1)', [note]);
    },
    notes: async () => {
      const { rows } = await run('SELECT note FROM notes ORDER BY note COLLATE "C"');
      return rows.map(({ note }) => String(note));
    },
    // In a read-only database the owner must set this first.
    clear: async () => {
      await run('BEGIN READ WRITE; TRUNCATE notes; COMMIT');
    },
    close: () => pool.end(),
  };
}
