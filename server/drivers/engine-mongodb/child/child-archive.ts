/** Whole databases: an archive of what is in use, and the making of a database of one that a tenant sent. */
import { closeSync, openSync, rmSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { type Document, EJSON } from 'bson';
import { systemClock } from '../../../platform/clock.ts';
import type { Handler } from '../../engine-children/child-call.ts';
import { DiskFull } from '../../engine-children/child-main.ts';
import { isFull } from '../../engine-children/sqlite-error.ts';
import { CommandError } from '../command-error.ts';
import { DocumentDatabase } from '../commands/document-commands.ts';
import { SERVER_VERSION } from '../server-version.ts';
import { decodeCommand, encodeDocument } from '../values/bson-documents.ts';
import { ARCHIVE_FILE, ArchiveReader, ArchiveWriter, BrokenArchive } from './archive-format.ts';
import { Crc64 } from './crc64.ts';

/** More than any file has. */
const ALL_PAGES = 2 ** 31 - 1;
/** Of documents that are inserted, or read, at once. */
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
  // Of a child that was killed meanwhile.
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
    await backup(database, copy, { rate: ALL_PAGES });
  } finally {
    database.close();
  }
}

async function writeArchive(
  name: string,
  file: string,
  { target, signal }: { target: string; signal: AbortSignal },
): Promise<void> {
  const clock = systemClock;
  const database = new DocumentDatabase({ file, databaseName: name, sizeLimit: () => null, clock });
  const descriptor = openSync(target, 'wx', 0o600);
  try {
    const archive = new ArchiveWriter(descriptor, SERVER_VERSION);
    const { cursor } = ask(database, { listCollections: 1, cursor: { batchSize: 1e6 }, $db: name });
    const collections = (cursor.firstBatch as unknown[]).map(asDocument);
    archive.collections(collections.map((found) => about(database, name, found)));
    for (const { name: collection } of collections) {
      for (const documents of batches(database, name, collection)) {
        archive.documents(name, collection, documents);
        await turn();
        signal.throwIfAborted();
      }
      archive.endOf(name, collection);
    }
  } finally {
    closeSync(descriptor);
    database.close();
  }
}

function about(database: DocumentDatabase, db: string, { name, options }: Document) {
  const { cursor } = ask(database, { listIndexes: name, cursor: { batchSize: 1e6 }, $db: db });
  const indexes = (cursor.firstBatch as unknown[]).map(asDocument);
  const metadata = EJSON.stringify(
    { options: options ?? {}, indexes, collectionName: name, type: 'collection' },
    { relaxed: false },
  );
  return { db, collection: String(name), metadata };
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
 * Makes the file `file` of the archive that a stranger sent, and writes all of it to the disk. The answer's
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
    new Filling(database, name).fill(new ArchiveReader(descriptor));
    await database.durable();
    return { head: { fault: null } };
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

class Filling {
  readonly #database: DocumentDatabase;
  readonly #name: string;
  /** By collection: of the documents there were. */
  readonly #sums = new Map<string, Crc64>();
  readonly #ended = new Set<string>();
  #from: string | null = null;

  constructor(database: DocumentDatabase, name: string) {
    this.#database = database;
    this.#name = name;
  }

  fill(archive: ArchiveReader): void {
    archive.nextAbout();
    const collections: Document[] = [];
    for (let found = archive.nextAbout(); found !== null; found = archive.nextAbout()) {
      if (this.#isOurs(found)) collections.push(found);
    }
    const indexes = collections.map((about) => ({ about, metadata: metadataOf(about) }));
    for (const { about, metadata } of indexes)
      this.#ask({ create: about.collection, ...(metadata.options as Document) });
    while (!archive.isAtEnd) this.#segment(archive);
    for (const { about, metadata } of indexes) {
      if (!this.#ended.has(about.collection)) throw new BrokenArchive('its end is missing');
      const wanted = ((metadata.indexes as Document[] | undefined) ?? []).filter(
        ({ name }) => name !== '_id_',
      );
      if (wanted.length > 0) this.#ask({ createIndexes: about.collection, indexes: wanted });
    }
  }

  #ask(command: Document): void {
    // As a driver's: in types and in what stays bytes.
    ask(this.#database, decodeCommand(encodeDocument({ ...command, $db: this.#name })));
  }

  /** False: of the server itself. Archives may hold several databases; here there is one. */
  #isOurs({ db, collection }: Document): boolean {
    if (db === '' || db === 'admin' || db === 'config' || String(collection).startsWith('system.'))
      return false;
    this.#from ??= String(db);
    if (db !== this.#from)
      throw new BrokenArchive(`it holds more than one database: ${this.#from} and ${db}`);
    return true;
  }

  /** Documents of one collection, or the end of one. */
  #segment(archive: ArchiveReader): void {
    const header = archive.nextAbout();
    if (header === null) throw new BrokenArchive('it has an end without a beginning');
    const collection = String(header.collection);
    const isOurs = this.#isOurs(header);
    const sum = this.#sums.get(collection) ?? new Crc64();
    this.#sums.set(collection, sum);
    if (header.EOF === true) {
      if (isOurs && BigInt(header.CRC) !== sum.value) throw new BrokenArchive('its checksum is wrong');
      if (isOurs) this.#ended.add(collection);
      if (archive.next() !== null) throw new BrokenArchive('documents follow the end of their collection');
      return;
    }
    let batch: Buffer[] = [];
    let bytes = 0;
    for (let next = archive.next(); next !== null; next = archive.next()) {
      if (!isOurs) continue;
      sum.add(next);
      batch.push(next);
      bytes += next.length;
      if (batch.length < BATCH_DOCUMENTS && bytes < BATCH_BYTES) continue;
      this.#insert(collection, batch);
      [batch, bytes] = [[], 0];
    }
    if (batch.length > 0) this.#insert(collection, batch);
  }

  #insert(collection: string, documents: readonly Buffer[]): void {
    ask(this.#database, { insert: collection, documents, $db: this.#name });
  }
}

function metadataOf({ metadata }: Document): Document {
  try {
    return EJSON.parse(String(metadata || '{}'), { relaxed: false }) as Document;
  } catch (error) {
    throw new BrokenArchive(`what it says of a collection cannot be read: ${(error as Error).message}`);
  }
}
