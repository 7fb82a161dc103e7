/** Archives of databases on the operator's MongoDB, by the driver: no program of MongoDB's is needed. */
import { setImmediate as turn } from 'node:timers/promises';
import { deserialize } from 'bson';
import { type ClientSession, type Db, type Document, type MongoClient, MongoServerError } from 'mongodb';
import {
  ArchiveContents,
  ArchiveWriter,
  type FoundCollection,
  metadataOf,
} from '../../../../../libs/mongo/index.ts';
import type { LoadHow } from '../../../../databases/left-out.ts';
import { isTestName } from '../../shared/test-databases.ts';
import {
  type ArchiveTarget,
  makeCollection,
  makeIndexes,
  type Refusal,
  tellPassedOver,
} from '../archive-parts.ts';

const BATCH = { documents: 1000, bytes: 512 * 1024, isBeside: isTestName };
/** Prefix of collections during a load. */
const LOADING = 'cloudlet_load.';
const EXACT = { promoteValues: false, bsonRegExp: true } as const;

/** The bytes of an archive; with `isSnapshot` consistent, which a replica set supports. */
export async function* archiveOf(
  client: MongoClient,
  database: string,
  { version, isSnapshot, signal }: { version: string; isSnapshot: boolean; signal: AbortSignal },
): AsyncGenerator<Buffer> {
  const db = client.db(database);
  const session = isSnapshot ? client.startSession({ snapshot: true }) : null;
  try {
    const found = (await db.listCollections().toArray()).filter(({ name }) => !isHidden(name));
    const all = await Promise.all(found.map((each) => about(db, each)));
    const archive = new ArchiveWriter();
    yield archive.head(version, all);
    for (const { collection, type } of all) {
      if (type === 'view') continue;
      for await (const documents of batchesOf(db, collection, session)) {
        signal.throwIfAborted();
        yield archive.documents(database, collection, documents);
      }
      yield archive.endOf(database, collection);
    }
  } finally {
    await session?.endSession();
  }
}

function isHidden(name: string): boolean {
  return name.startsWith('system.') || name.startsWith(LOADING);
}

async function about(db: Db, { name, type = 'collection', options = {} }: Document) {
  const indexes = type === 'view' ? [] : await db.collection(name).listIndexes().toArray();
  const metadata = metadataOf(name, { type, options, indexes });
  return { db: db.databaseName, collection: String(name), type, metadata };
}

async function* batchesOf(db: Db, name: string, session: ClientSession | null): AsyncGenerator<Uint8Array[]> {
  const { bytes: most, documents: count } = BATCH;
  const more = session === null ? {} : { session };
  let [batch, bytes]: [Uint8Array[], number] = [[], 0];
  for await (const document of db.collection(name).find({}, { raw: true, batchSize: count, ...more })) {
    // With `raw`, a document is bytes, despite the driver's types.
    const found = document as unknown as Uint8Array;
    batch.push(found);
    bytes += found.length;
    if (batch.length < count && bytes < most) continue;
    yield batch;
    [batch, bytes] = [[], 0];
  }
  if (batch.length > 0) yield batch;
}

/**
 * Reads all of an archive, then creates its collections beside the existing ones, and only then
 * replaces these. Throws BrokenArchive.
 */
export async function loadArchive(db: Db, open: () => number, { signal, leftOut }: LoadHow): Promise<void> {
  for (const _ of new ArchiveContents(open(), BATCH).batches()) await turn();
  const archive = new ArchiveContents(open(), BATCH);
  leaveTestsOut(archive, leftOut);
  const stored = ownOf(archive).filter(({ type }) => type !== 'view');
  await dropWhere(db, (name) => name.startsWith(LOADING));
  const target: ArchiveTarget = {
    ask: (command) => db.command(command),
    refusalOf,
    leftOut: leftOut === undefined ? null : (option) => leftOut.add({ line: null, ...option }),
  };
  tellPassedOver(archive.passedOver, target.leftOut);
  try {
    const made: FoundCollection[] = [];
    for (const each of stored)
      if (await makeCollection(target, { name: each.name, as: LOADING + each.name }, each.options))
        made.push(each);
    for (const { collection, beside, documents } of archive.batches()) {
      signal.throwIfAborted();
      if (beside !== null || !made.some(({ name }) => name === collection)) continue;
      const all = documents.map((each) => deserialize(each, EXACT));
      await db.collection(LOADING + collection).insertMany(all, { bypassDocumentValidation: true });
    }
    for (const { name, indexes: all, options } of made) {
      const indexes = all.map(({ ns: _, ...spec }) => spec);
      await makeIndexes(target, { name, as: LOADING + name }, { indexes, options });
    }
    await replaceCollections(db, { archive, stays: new Set(made.map(({ name }) => name)), target });
  } finally {
    await dropWhere(db, (name) => name.startsWith(LOADING));
  }
}

function refusalOf(error: unknown): Refusal | null {
  return error instanceof MongoServerError ? { code: Number(error.code), message: error.message } : null;
}

function ownOf({ collections }: ArchiveContents): FoundCollection[] {
  return collections.filter(({ beside = null }) => beside === null);
}

/** A database's user has no rights to other databases. A restore from a dump has no caller to inform. */
function leaveTestsOut({ collections }: ArchiveContents, leftOut: LoadHow['leftOut']): void {
  const reason = "test databases are not created on an operator's MongoDB server";
  for (const name of new Set(collections.flatMap(({ beside }) => beside ?? [])))
    leftOut?.add({ line: null, text: `database ${name}`, reason });
}

async function replaceCollections(
  db: Db,
  {
    archive,
    stays,
    target,
  }: {
    readonly archive: ArchiveContents;
    readonly stays: ReadonlySet<string>;
    readonly target: ArchiveTarget;
  },
): Promise<void> {
  for (const name of stays) await db.renameCollection(LOADING + name, name, { dropTarget: true });
  await dropWhere(db, (name) => !isHidden(name) && !stays.has(name));
  for (const { name, type, options } of ownOf(archive))
    if (type === 'view') await makeCollection(target, { name, as: name }, options);
}

async function dropWhere(db: Db, isWanted: (name: string) => boolean): Promise<void> {
  for (const { name } of await db.listCollections({}, { nameOnly: true }).toArray())
    if (isWanted(name)) await db.dropCollection(name);
}
