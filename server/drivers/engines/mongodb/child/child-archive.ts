/** Whole databases: creates archives of open ones, and databases from tenants' archives. */
import { closeSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs';
import { backup, DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { type Document, EJSON } from 'bson';
import {
  ARCHIVE_FILE,
  ArchiveContents,
  ArchiveWriter,
  BrokenArchive,
  CommandError,
  type DocumentBatch,
  DocumentDatabase,
  decodeCommand,
  encodeDocument,
  type FoundCollection,
  metadataOf,
  SERVER_VERSION,
} from '../../../../../libs/mongo/index.ts';
import { DiskFull, hostSpace, isFull } from '../../../../../libs/sqlite/index.ts';
import { LeftOut } from '../../../../databases/left-out.ts';
import { systemClock } from '../../../../platform/clock.ts';
import type { Handler } from '../../../engine-children/child-call.ts';
import { isTestName } from '../../shared/test-databases.ts';
import {
  type ArchiveTarget,
  type LeftOutOption,
  makeCollection,
  makeIndexes,
  tellPassedOver,
} from '../archive-parts.ts';
import { TestDocuments } from './test-documents.ts';

/** More pages than any file has. */
const ALL_PAGES = 2 ** 31 - 1;
/** Documents inserted or read per batch. */
const BATCH_DOCUMENTS = 1000;
const BATCH_BYTES = 4 * 2 ** 20;
const CONTEXT = { readOnly: false };

/** Throws CommandError for operations that the engine refuses. */
function ask(database: DocumentDatabase, command: Document): Document {
  return done(database.run(command, CONTEXT));
}

/** Throws CommandError for a reply that is a refusal. */
function done(reply: Document): Document {
  const error = reply.ok === 1 ? reply.writeErrors?.[0] : reply;
  if (error !== undefined) throw new CommandError(Number(error.code), String(error.errmsg));
  return reply;
}

/** A database of an archive: a name, and its file. */
interface Archived {
  readonly name: string;
  readonly file: string;
}

/**
 * Writes an archive of all databases to the file `target`, each as of one moment, while others
 * write: from copies that are made in one step each, on another thread.
 */
export function copyHandler(all: () => readonly Archived[], target: string): Handler {
  const remove = () => {
    for (const file of readdirSync('.'))
      if (file === target || file.startsWith(`${target}.`)) rmSync(file, { force: true });
  };
  // Leftover of a killed child.
  remove();
  return async ({ signal }) => {
    remove();
    try {
      const copies: Archived[] = [];
      for (const { name, file } of all()) {
        const copy = `${target}.${copies.length}.sqlite`;
        await backupTo(file, copy);
        copies.push({ name, file: copy });
      }
      await writeArchive(copies, { target, signal });
      for (const { file } of copies)
        for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true });
      return { head: {} };
    } catch (error) {
      remove();
      throw isFull(error) || (error as NodeJS.ErrnoException).code === 'ENOSPC' ? new DiskFull(error) : error;
    }
  };
}

async function backupTo(file: string, copy: string): Promise<void> {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    // The archive is made from the copy and is no larger.
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
  all: readonly Archived[],
  { target, signal }: { target: string; signal: AbortSignal },
): Promise<void> {
  const descriptor = openSync(target, 'wx', 0o600);
  const write = (bytes: Buffer) => {
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
  };
  try {
    const archive = new ArchiveWriter();
    const collections = [];
    for (const each of all) collections.push(...(await within(each, (database) => catalog(database, each))));
    write(archive.head(SERVER_VERSION, collections));
    for (const each of all)
      await within(each, async (database) => {
        for (const { collection, type } of catalog(database, each)) {
          // A view is stored as its pipeline; its documents are in the archive already.
          if (type === 'view') continue;
          for (const documents of batches(database, each.name, collection)) {
            write(archive.documents(each.name, collection, documents));
            await turn();
            signal.throwIfAborted();
          }
          write(archive.endOf(each.name, collection));
        }
      });
  } finally {
    closeSync(descriptor);
  }
}

/** Only one is open at a time. */
async function within<T>(
  { name, file }: Archived,
  work: (database: DocumentDatabase) => T | Promise<T>,
): Promise<T> {
  const clock = systemClock;
  const database = new DocumentDatabase({ file, databaseName: name, sizeLimit: () => null, clock });
  try {
    return await work(database);
  } finally {
    database.close();
  }
}

function catalog(database: DocumentDatabase, { name }: Archived) {
  const { cursor } = ask(database, { listCollections: 1, cursor: { batchSize: 1e6 }, $db: name });
  return (cursor.firstBatch as unknown[]).map((found) => about(database, name, asDocument(found)));
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
 * Creates the file `file` from an untrusted archive, and those of test databases beside it, and
 * syncs them. The answer's `fault` is the reason for refusing it; null: usable.
 */
export const checkHandler: Handler = async ({ head }) => {
  const [file, name] = [String(head.file), String(head.name)];
  const filled = new FilledDatabases({ file, name, sizeLimitBytes: Number(head.sizeLimitBytes) });
  const descriptor = openSync(ARCHIVE_FILE, 'r');
  try {
    const most = { documents: BATCH_DOCUMENTS, bytes: BATCH_BYTES };
    const contents = new ArchiveContents(descriptor, { ...most, isBeside: isTestName });
    const leftOut = new LeftOut();
    await fill(filled, { contents, leftOut: head.lenient === true ? leftOut : null });
    await filled.durable();
    const { notes, count } = leftOut;
    return { head: { fault: null, leftOut: { notes, count } } };
  } catch (error) {
    if (error instanceof BrokenArchive || error instanceof CommandError)
      return { head: { fault: error.message } };
    throw error;
  } finally {
    closeSync(descriptor);
    filled.close();
    rmSync(ARCHIVE_FILE);
  }
};

/** Databases created from an archive. */
class FilledDatabases {
  readonly #name: string;
  readonly #database: DocumentDatabase;
  readonly #tests: TestDocuments;

  constructor({ file, name, sizeLimitBytes }: { file: string; name: string; sizeLimitBytes: number }) {
    this.#name = name;
    const limitBytes = () => Math.max(1, sizeLimitBytes - this.#database.sizeBytes);
    this.#tests = new TestDocuments({ beside: file, limitBytes });
    const sizeLimit = () => Math.max(1, sizeLimitBytes - this.#tests.bytes);
    this.#database = new DocumentDatabase({ file, databaseName: name, sizeLimit, clock: systemClock });
  }

  /** Throws CommandError if refused. `beside`: a test database; null: the tenant's. */
  ask(command: Document, beside: string | null): Document {
    return done(this.#reply(command, beside));
  }

  /** The same, but the reply may have `writeErrors`. */
  run(command: Document, beside: string | null): Document {
    const reply = this.#reply(command, beside);
    if (reply.ok !== 1) done(reply);
    return reply;
  }

  #reply(command: Document, beside: string | null): Document {
    const named = { ...command, $db: beside ?? this.#name };
    return beside === null ? this.#database.run(named, CONTEXT) : this.#tests.run(beside, named, CONTEXT);
  }

  async durable(): Promise<void> {
    await Promise.all([this.#database.durable(), this.#tests.durable()]);
  }

  close(): void {
    this.#tests.close();
    this.#database.close();
  }
}

interface Filling {
  readonly contents: ArchiveContents;
  /** Collects unsupported options and indexes; null: they are refused. */
  readonly leftOut: LeftOut | null;
}

async function fill(filled: FilledDatabases, { contents, leftOut }: Filling): Promise<void> {
  const tell = leftOut === null ? null : (option: LeftOutOption) => leftOut.add({ line: null, ...option });
  const targetOf = (beside: string | null): ArchiveTarget => ({
    // Encoded like a driver's, so that types and raw bytes match.
    ask: (command) => filled.ask(decodeCommand(encodeDocument(command)), beside),
    refusalOf: (error) => (error instanceof CommandError ? error : null),
    leftOut: tell,
  });
  tellPassedOver(contents.passedOver, tell);
  const made: FoundCollection[] = [];
  for (const each of contents.collections) {
    const { name, beside = null, options } = each;
    if (await makeCollection(targetOf(beside), { name, as: name }, options)) made.push(each);
  }
  // They were there before the validator, or it only warned.
  const spaceOf = (name: string, beside: string | null) => `${beside ?? ''}.${name}`;
  const spaces = new Set(made.map(({ name, beside = null }) => spaceOf(name, beside)));
  for (const { collection, beside, documents } of contents.batches())
    if (spaces.has(spaceOf(collection, beside))) insert(filled, { collection, beside, documents, leftOut });
  for (const { name, beside = null, indexes, options } of made)
    await makeIndexes(targetOf(beside), { name, as: name }, { indexes, options });
}

interface Inserting extends DocumentBatch {
  readonly leftOut: LeftOut | null;
}

/** Fields of a document that MongoDB stored earlier and refuses today: their names, or an `_id` with such. */
const REFUSED_DOCUMENT: ReadonlySet<number> = new Set([2, 52, 53, 56, 57]);

function insert(filled: FilledDatabases, { collection, beside, documents, leftOut }: Inserting): void {
  const command = { insert: collection, documents, bypassDocumentValidation: true };
  if (leftOut === null) return void filled.ask(command, beside);
  const { writeErrors = [] } = filled.run({ ...command, ordered: false }, beside);
  for (const { index, code, errmsg } of writeErrors as Document[]) {
    if (!REFUSED_DOCUMENT.has(Number(code))) throw new CommandError(Number(code), String(errmsg));
    const { _id: id } = decodeCommand(documents[Number(index)] ?? encodeDocument({}));
    const text = `document ${EJSON.stringify(id, { relaxed: true })} of ${collection}`;
    leftOut.add({ line: null, text, reason: String(errmsg) });
  }
}
