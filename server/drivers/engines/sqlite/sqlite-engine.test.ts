/** SQLite as an engine, through libSQL's driver. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { createClient } from '@libsql/client';
import type { EngineDatabase } from '../../../databases/engine.ts';
import { type EngineFixture, type NotesClient, testEngine } from '../../../testing/engine.conformance.ts';
import { eventually } from '../../../testing/eventually.ts';
import { openSqlite } from '../../../testing/sqlite-fixture.ts';
import { exchangeHrana } from './hrana-exchange.ts';
import type { SqliteEngine } from './sqlite-engine.ts';

async function open(): Promise<EngineFixture> {
  const fixture = openSqlite();
  const { engine } = fixture;
  const edge = await openEdge(engine);
  return {
    engine,
    connect: async (database) => clientOf(edge.connect(database)),
    crash: async (database) => {
      process.kill(await eventually(() => engine.processOf(database)), 'SIGKILL');
    },
    close: async () => {
      await edge.close();
      await fixture.close();
    },
    holdsSize: true,
    statements: {
      count: (rows) =>
        `WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT ${rows}) SELECT n FROM c`,
      addNote: "INSERT INTO notes VALUES ('by query')",
      wrong: 'SELEC 1',
      endless: 'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c',
    },
  };
}

/** Hrana without passwords, which are the edge's to check: hrana/hrana-edge.ts. */
async function openEdge(engine: SqliteEngine) {
  const known = new Map<string, EngineDatabase>();
  const server = createServer(async (request, response) => {
    const [, databaseId = '', ...path] = (request.url ?? '').split('/');
    const database = known.get(databaseId);
    const body = await buffer(request);
    const signal = new AbortController().signal;
    try {
      if (database === undefined || request.method === 'GET') return response.writeHead(200).end('{}');
      const answer = await exchangeHrana(engine, database, { path: path.join('/'), body, signal });
      response.writeHead(answer.status, { 'content-type': answer.contentType });
      if (answer.body instanceof Uint8Array) return response.end(answer.body);
      return await pipeline(answer.body, response);
    } catch (error) {
      return response.writeHead(503).end(String(error));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    connect: (database: EngineDatabase) => {
      known.set(database.databaseId, database);
      return createClient({ url: `http://127.0.0.1:${port}/${database.databaseId}/` });
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function clientOf(driver: ReturnType<typeof createClient>): NotesClient {
  return {
    prepare: async () => {
      await driver.execute('CREATE TABLE IF NOT EXISTS notes (note TEXT)');
    },
    add: async (note) => {
      await driver.execute({ sql: 'INSERT INTO notes VALUES (?)', args: [note] });
    },
    notes: async () => {
      const { rows } = await driver.execute('SELECT note FROM notes ORDER BY note');
      return rows.map(({ note }) => String(note));
    },
    clear: async () => {
      await driver.execute('DELETE FROM notes');
    },
    close: async () => driver.close(),
  };
}

testEngine('sqlite', open);
