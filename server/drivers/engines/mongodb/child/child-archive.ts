/** Whole databases: an archive of what is in use, and the making of a database of one that a tenant sent. */
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import type { Document } from 'bson';
import {
  ARCHIVE_FILE,
  ArchiveContents,
  ArchiveWriter,
  BrokenArchive,
  CommandError,
  DocumentDatabase,
  decodeCommand,
  encodeDocument,
  metadataOf,
  SERVER_VERSION,
} from '../../../../../libs/mongo/index.ts';
import { DiskFull, hostSpace, isFull } from '../../../../../libs/sqlite/index.ts';
import { systemClock } from '../../../../platform/clock.ts';
import type { Handler } from '../../../engine-children/child-call.ts';
import { type ArchiveTarget, type LeftOutOption, makeCollection, makeIndexes } from '../archive-parts.ts';

/** More than any file has. */
const ALL_PAGES = 2 ** 31 - 1;
/** Documents that are inserted, or read, at once. */
const BATCH_DOCUMENTS = 1000;
const BATCH_BYTES = 4 * 2 ** 20;
const CONTEXT = { readOnly: false };

/** Throws CommandError for what the engine refuses. */
function ask(database: DocumentDatabase, command: Document): Document {
  const reply = database.run(command, CONTEXT);
  const error = reply.ok === 1 ? reply.writeErrors?.[0] : reply;
  if (error !== undefined) throw new CommandError(Number(error.code), String(error.errmsg));
  return reply;
}

/**
 * Writes the archive of the database `name` in `file` into the file `target`, as of one moment, while others
 * write: of a copy that is made in one step, on another thread.
 */
export function copyHandler(name: string, file: string, target: string): Handler {
  const copy = `${target}.sqlite`;
  const remove = () => {
    for (const path of [target, copy, `${copy}-wal`, `${copy}-shm`, `${copy}-journal`])
      rmSync(path, { force: true });
  };
  // Leftover of a killed child.
  remove();
  return async ({ signal }) => {
    remove();
    try {
      await backupTo(file, copy);
      await writeArchive(name, copy, { target, signal });
      return { head: {} };
    } catch (error) {
      rmSync(target, { force: true });
      throw isFull(error) || (error as NodeJS.ErrnoException).code === 'ENOSPC' ? new DiskFull(error) : error;
    } finally {
      for (const path of [copy, `${copy}-wal`, `${copy}-shm`]) rmSync(path, { force: true });
    }
  };
}

async function backupTo(file: string, copy: string): Promise<void> {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    // The archive is made of the copy, and is no longer than that.
    hostSpace.assertSpaceFor(2 * sizeOf(database));
    await backup(database, copy, { rate: ALL_PAGES });
  } finally {
    database.close();
  }
}

function sizeOf(database: DatabaseSync): number {
  const sql = 'SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()';
  return Number(database.prepare(sql).get()?.bytes);
}

async function writeArchive(
  name: string,
  file: string,
  { target, signal }: { target: string; signal: AbortSignal },
): Promise<void> {
  const clock = systemClock;
  const database = new DocumentDatabase({ file, databaseName: name, sizeLimit: () => null, clock });
  const descriptor = openSync(target, 'wx', 0o600);
  const write = (bytes: Buffer) => {
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
  };
  try {
    const archive = new ArchiveWriter();
    const { cursor } = ask(database, { listCollections: 1, cursor: { batchSize: 1e6 }, $db: name });
    const collections = (cursor.firstBatch as unknown[]).map(asDocument);
    write(
      archive.head(
        SERVER_VERSION,
        collections.map((found) => about(database, name, found)),
      ),
    );
    for (const { name: collection, type } of collections) {
      // A view is stored as its pipeline; its documents are in the archive already.
      if (type === 'view') continue;
      for (const documents of batches(database, name, collection)) {
        write(archive.documents(name, collection, documents));
        await turn();
        signal.throwIfAborted();
      }
      write(archive.endOf(name, collection));
    }
  } finally {
    closeSync(descriptor);
    database.close();
  }
}

function about(database: DocumentDatabase, db: string, { name, type, options = {} }: Document) {
  if (type === 'view')
    return { db, collection: String(name), type, metadata: metadataOf(name, { options, indexes: [], type }) };
  const { cursor } = ask(database, { listIndexes: name, cursor: { batchSize: 1e6 }, $db: db });
  const indexes = (cursor.firstBatch as unknown[]).map(asDocument);
  return {
    db,
    collection: String(name),
    metadata: metadataOf(name, { options, indexes, type: 'collection' }),
  };
}

function* batches(database: DocumentDatabase, db: string, collection: string): Generator<Uint8Array[]> {
  const batchSize = BATCH_DOCUMENTS;
  let { cursor } = ask(database, { find: collection, batchSize, $db: db });
  yield cursor.firstBatch.map(asBytes);
  while (!cursor.id.isZero()) {
    ({ cursor } = ask(database, { getMore: cursor.id, collection, batchSize, $db: db }));
    yield cursor.nextBatch.map(asBytes);
  }
}

function asBytes(document: Uint8Array | Document): Uint8Array {
  return document instanceof Uint8Array ? document : encodeDocument(document);
}

function asDocument(document: unknown): Document {
  return document instanceof Uint8Array ? decodeCommand(document) : (document as Document);
}

/**
 * Makes the file `file` from an untrusted archive, and writes all of it to the disk. The answer's
 * `fault` says why it cannot be used; null: it can.
 */
export const checkHandler: Handler = async ({ head }) => {
  const [file, name] = [String(head.file), String(head.name)];
  const database = new DocumentDatabase({
    file,
    databaseName: name,
    sizeLimit: () => Number(head.sizeLimitBytes),
    clock: systemClock,
  });
  const descriptor = openSync(ARCHIVE_FILE, 'r');
  try {
    const contents = new ArchiveContents(descriptor, { documents: BATCH_DOCUMENTS, bytes: BATCH_BYTES });
    const leftOut: LeftOutOption[] = [];
    await fill(database, { name, contents, leftOut: head.lenient === true ? leftOut : null });
    await database.durable();
    return { head: { fault: null, leftOut } };
  } catch (error) {
    if (error instanceof BrokenArchive || error instanceof CommandError)
      return { head: { fault: error.message } };
    throw error;
  } finally {
    closeSync(descriptor);
    database.close();
    rmSync(ARCHIVE_FILE);
  }
};

interface Filling {
  /** The database's. */
  readonly name: string;
  readonly contents: ArchiveContents;
  /** Takes options and indexes that cannot be had; null: they are refused. */
  readonly leftOut: LeftOutOption[] | null;
}

async function fill(database: DocumentDatabase, { name: db, contents, leftOut }: Filling): Promise<void> {
  const target: ArchiveTarget = {
    // Encoded as a driver would, so that types and undecoded bytes match.
    ask: (command) => ask(database, decodeCommand(encodeDocument({ ...command, $db: db }))),
    refusalOf: (error) => (error instanceof CommandError ? error : null),
    leftOut: leftOut === null ? null : (option) => void leftOut.push(option),
  };
  for (const { name, options } of contents.collections)
    await makeCollection(target, { name, as: name }, options);
  for (const { collection, documents } of contents.batches())
    ask(database, { insert: collection, documents, $db: db });
  for (const { name, indexes } of contents.collections)
    await makeIndexes(target, { name, as: name }, indexes);
}
