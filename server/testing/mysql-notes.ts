/** MySQL's part of the engine suite: the users' driver and its statements. */
import { createPool, type PoolConnection, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise';
import type { Engine, EngineDatabase } from '../databases/engine.ts';
import type { EngineFixture, NotesClient } from './engine.conformance.ts';
import { engineFixture, type ServerFixture } from './server-fixture.ts';

/** `crash`, `close`: of the server; clients are closed first. */
export function mysqlEngineFixture(
  server: Pick<ServerFixture<Engine>, 'engine' | 'close'> & Pick<EngineFixture, 'crash'>,
): EngineFixture {
  return engineFixture({
    ...server,
    notesIn,
    statements: {
      count: (rows) =>
        `WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < ${rows}) SELECT n FROM c`,
      addNote: "INSERT INTO notes VALUES ('by query')",
      wrong: 'SELEC 1',
      endless: 'SELECT COUNT(*) FROM seq_1_to_1000000000 a, seq_1_to_1000000000 b',
    },
  });
}

async function notesIn(engine: Engine, database: EngineDatabase, password: string): Promise<NotesClient> {
  const { uri } = await engine.endpoint(database);
  const pool = createPool({ uri: uri(password), connectionLimit: 4 });
  pool.on('connection', (connection) => connection.on('error', () => {}));
  /**
   * A session that was not ended: the driver would only notice at the next statement, too late for an INSERT.
   */
  const alive = async (): Promise<PoolConnection> => {
    for (;;) {
      const connection = await pool.getConnection();
      try {
        await connection.ping();
        return connection;
      } catch {
        connection.destroy();
      }
    }
  };
  const run = async (sql: string, values: unknown[] = []) => {
    const connection = await alive();
    try {
      return await connection.query<RowDataPacket[] & ResultSetHeader>(sql, values);
    } finally {
      connection.release();
    }
  };
  return {
    prepare: async () => {
      await run('CREATE TABLE IF NOT EXISTS notes (note LONGTEXT)');
    },
    add: async (note) => {
      await run('INSERT INTO notes VALUES (?)', [note]);
    },
    notes: async () => {
      const [rows] = await run('SELECT note FROM notes ORDER BY BINARY note');
      return rows.map((row) => String(row.note));
    },
    clear: async () => {
      await run('DELETE FROM notes');
    },
    close: () => pool.end(),
  };
}
