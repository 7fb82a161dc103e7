/**
 * MongoDB as an engine, through its own driver: ours and, where TEST_MONGODB_ADMIN_URL names an administrator
 * of one, a server.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { MongoClient } from 'mongodb';
import { QueryFailed } from '../../../databases/engine.ts';
import { type EngineFixture, type NotesClient, testEngine } from '../../../testing/engine.conformance.ts';
import { eventually } from '../../../testing/eventually.ts';
import { openMongodb } from '../../../testing/mongodb-fixture.ts';
import { externalMongodb } from './on-server/choice.ts';
import { operatorDeployment } from './on-server/deployment.ts';
import { ServerMongodb } from './on-server/server-engine.ts';

/** Six times as many would take longer than any caller waits, one document at a time. */
const MULTIPLY = [{ $addFields: { a: { $range: [0, 1000] } } }, { $unwind: '$a' }];

const STATEMENTS = {
  count: (rows: number) => ({
    aggregate: 1,
    pipeline: [{ $documents: Array.from({ length: rows }, (_, index) => ({ n: index + 1 })) }],
    cursor: {},
  }),
  addNote: { insert: 'notes', documents: [{ note: 'by query' }] },
  wrong: { find: 'notes', filter: { $nothing: 1 } },
  endless: {
    aggregate: 1,
    pipeline: [{ $documents: [{}] }, ...Array(6).fill(MULTIPLY).flat(), { $group: { _id: '$a' } }],
    cursor: {},
  },
};

async function open(): Promise<EngineFixture> {
  const fixture = openMongodb();
  const { engine } = fixture;
  return {
    engine,
    connect: async (database, password) => {
      const { uri } = await engine.endpoint(database);
      return clientOf(await fixture.connect(uri(password)));
    },
    crash: async (database) => {
      process.kill(await eventually(() => engine.processOf(database)), 'SIGKILL');
    },
    close: () => fixture.close(),
    holdsSize: true,
    statements: STATEMENTS,
  };
}

function clientOf(client: MongoClient): NotesClient {
  const notes = client.db().collection<{ note: string }>('notes');
  return {
    prepare: async () => {
      await notes.createIndex({ note: 1 });
    },
    add: async (note) => {
      await notes.insertOne({ note });
    },
    notes: async () => (await notes.find().sort({ note: 1 }).toArray()).map(({ note }) => note),
    clear: async () => {
      await notes.deleteMany({});
    },
    close: () => client.close(),
  };
}

async function openServer(mongodbUrl: string): Promise<EngineFixture> {
  const address = externalMongodb({ mongodbUrl });
  if (address === null) throw new Error('TEST_MONGODB_ADMIN_URL is empty');
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-mongodb-'));
  const alarms = { raise: () => {}, clear: () => {} };
  const engine = new ServerMongodb({ folder, deployment: operatorDeployment({ folder, address, alarms }) });
  const clients: MongoClient[] = [];
  return {
    engine,
    connect: async (database, password) => {
      const { uri } = await engine.endpoint(database);
      const client = new MongoClient(uri(password));
      clients.push(client);
      return clientOf(await client.connect());
    },
    // We do not own it, so we must not end it.
    crash: null,
    close: async () => {
      await Promise.all(clients.map((client) => client.close(true)));
      await engine.close();
      rmSync(folder, { recursive: true, force: true });
    },
    holdsSize: false,
    statements: STATEMENTS,
  };
}

testEngine('mongodb', open);

test('a query over its time says so also where this process is busy, and one over its own maxTimeMS does not', async (t) => {
  const fixture = openMongodb();
  t.after(() => fixture.close());
  const { database } = await fixture.make();
  const ask = (timeoutMs: number, more: object = {}) =>
    fixture.engine.query(database, {
      statement: Object.assign({}, STATEMENTS.endless, more),
      params: [],
      readOnly: true,
      maxRows: 9,
      maxBytes: 999,
      timeoutMs,
      signal: new AbortController().signal,
    });
  // The notice of the query's start and its answer are read in the same turn.
  let isOver = false;
  const block = () => {
    for (const end = performance.now() + 600; performance.now() < end; );
    if (!isOver) setImmediate(block);
  };
  setImmediate(block);
  await assert.rejects(ask(200), { code: 'query_timeout' });
  isOver = true;
  await assert.rejects(
    ask(60_000, { maxTimeMS: 100 }),
    (error) => error instanceof QueryFailed && error.engineCode === 'MaxTimeMSExpired',
  );
});
const serverUrl = process.env.TEST_MONGODB_ADMIN_URL ?? '';
if (serverUrl !== '') testEngine('mongodb by URL', () => openServer(serverUrl));
