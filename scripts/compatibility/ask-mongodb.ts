/** Tests a MongoDB engine for each feature of a server of version 7.0. */
import { type Db, type Document, MongoClient, MongoServerError } from 'mongodb';
import { EXPRESSIONS } from './mongodb-expressions.ts';
import * as probes from './mongodb-probes.ts';

const LIST = new Intl.ListFormat('en', { style: 'long', type: 'unit' });
const ADMIN_COMMANDS = new Set('getCmdLineOpts getParameter setParameter currentOp killOp top'.split(' '));
const OF_NO_COLLECTION = new Set(['$documents', '$listLocalSessions']);
/** An unknown cursor: the command exists. */
const CURSOR_NOT_FOUND = 43;

type Ask = (db: Db, probe: Document, name: string) => Promise<unknown>;

const all = (db: Db) => db.collection<Document>('a');
const run = (db: Db, stage: Document) => {
  const [name = ''] = Object.keys(stage);
  return (OF_NO_COLLECTION.has(name) ? db : all(db)).aggregate([stage]).toArray();
};

async function makeIndex(db: Db, { key, ...options }: Document): Promise<void> {
  await db.collection('i').createIndex(key, options);
  await db.collection('i').drop();
}

/** How to test each kind of feature. */
const KINDS: readonly (readonly [kind: string, probes: Readonly<Record<string, unknown>>, ask: Ask])[] = [
  ['commands', probes.COMMANDS, (db, command, name) => databaseOf(db, name).command(command)],
  ['commands by their helpers', { renameCollection: {} }, (db) => all(db).rename('renamed')],
  ['stages', probes.STAGES, (db, argument, name) => run(db, { [name]: argument })],
  ['filters', probes.FILTERS, (db, filter) => all(db).find(filter).toArray()],
  ['updates', probes.UPDATES, (db, update) => all(db).updateMany({}, update)],
  [
    'accumulators',
    probes.ACCUMULATORS,
    (db, argument, name) => run(db, { $group: { _id: 1, x: { [name]: argument } } }),
  ],
  ['expressions', EXPRESSIONS, (db, argument, name) => run(db, { $project: { x: { [name]: argument } } })],
  ['indexes', probes.INDEXES, makeIndex],
  ['options of collections', probes.COLLECTIONS, (db, options) => db.createCollection('made', options)],
];

function databaseOf(db: Db, command: string): Db {
  return ADMIN_COMMANDS.has(command) ? db.client.db('admin') : db;
}

async function fill(db: Db): Promise<void> {
  await db.dropDatabase();
  const documents = [1, 2].map((n) => ({ n, s: 'a', l: [1, 2], p: [n, 0], o: { a: 1 }, t: 'a word', u: n }));
  await all(db).insertMany(documents);
  await all(db).createIndex({ s: 'text' });
  await all(db).createIndex({ p: '2d' });
}

/** A row of the table: accepted features, and refused ones with the code of the error. */
async function rowOf(db: Db, [kind, examples, ask]: (typeof KINDS)[number]): Promise<string> {
  const [yes, no]: [string[], string[]] = [[], []];
  for (const [name, probe] of Object.entries(examples)) {
    await fill(db);
    try {
      await ask(db, probe as Document, name);
      yes.push(`\`${name}\``);
    } catch (error) {
      if (!(error instanceof MongoServerError)) throw error;
      if (error.code === CURSOR_NOT_FOUND) yes.push(`\`${name}\``);
      else no.push(`\`${name}\` (${error.code})`);
    }
  }
  return `| ${kind} | ${LIST.format(yes)} | ${no.length === 0 ? '–' : LIST.format(no)} |`;
}

/** The part of the page about the engine at that address. */
export async function askMongodb(uri: string): Promise<string> {
  const client = await new MongoClient(uri).connect();
  const db = client.db();
  const rows: string[] = [];
  for (const kind of KINDS) rows.push(await rowOf(db, kind));
  const { version } = await db.admin().buildInfo();
  await db.dropDatabase();
  await client.close();
  return `## MongoDB: the built-in engine ${version} compared with MongoDB 7.0

Each feature was tested with an example. Refused features are listed with their error code.

| | yes | no |
|---|---|---|
${rows.join('\n')}
`;
}
