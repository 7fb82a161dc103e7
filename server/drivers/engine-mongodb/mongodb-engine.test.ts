/** MongoDB as an engine, through its own driver. */
import type { MongoClient } from 'mongodb';
import { type EngineHouse, type NotesClient, testEngine } from '../../testing/engine.conformance.ts';
import { eventually } from '../../testing/eventually.ts';
import { openMongodb } from '../../testing/mongodb-house.ts';

async function open(): Promise<EngineHouse> {
  const house = openMongodb();
  const { engine } = house;
  return {
    engine,
    connect: async (database, password) => {
      const { uri } = await engine.endpoint(database);
      return clientOf(await house.connect(uri(password)));
    },
    crash: async (database) => {
      process.kill(await eventually(() => engine.processOf(database)), 'SIGKILL');
    },
    close: () => house.close(),
    holdsSize: true,
    statements: {
      count: (rows) => ({
        aggregate: 1,
        pipeline: [{ $documents: Array.from({ length: rows }, (_, index) => ({ n: index + 1 })) }],
        cursor: {},
      }),
      addNote: { insert: 'notes', documents: [{ note: 'by query' }] },
      wrong: { find: 'notes', filter: { $nothing: 1 } },
      endless: {
        aggregate: 1,
        pipeline: [
          { $documents: [{ text: `${'a'.repeat(60)}b` }] },
          { $match: { text: { $regex: '^(a+)+$' } } },
        ],
        cursor: {},
      },
    },
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

testEngine('mongodb', open);
