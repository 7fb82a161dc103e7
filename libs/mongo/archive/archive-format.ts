/** Archives in the format of `mongodump --archive` and `mongorestore --archive`. */
import { readSync } from 'node:fs';
import { type Document, deserialize, EJSON, Long, serialize } from 'bson';
import { ARCHIVE_MAGIC } from './archive-kind.ts';
import { Crc64 } from './crc64.ts';

const TERMINATOR = Buffer.from([0xff, 0xff, 0xff, 0xff]);
/** A document of 16 MiB, plus what a server adds. */
const MAX_DOCUMENT_BYTES = 16 * 2 ** 20 + 16 * 1024;
const LEAST_DOCUMENT_BYTES = 5;
const READ_BYTES = 1024 * 1024;

export interface CollectionAbout {
  readonly db: string;
  readonly collection: string;
  readonly type?: string;
  /** Extended JSON: `{"options": {}, "indexes": []}`. */
  readonly metadata: string;
}

/** The archive is incomplete or invalid. */
export class BrokenArchive extends Error {
  constructor(what: string) {
    super(what);
    this.name = 'BrokenArchive';
  }
}

/** Writes an archive as a sequence of byte pieces. */
export class ArchiveWriter {
  #crc = new Crc64();

  /** All collections, before anything else. */
  head(version: string, all: readonly CollectionAbout[]): Buffer {
    const about = { concurrent_collections: 1, version: '0.1', server_version: version };
    const start = serialize({ ...about, tool_version: 'cloudlet' });
    const collections = all.map((each) => serialize({ type: 'collection', ...each, size: 0 }));
    return Buffer.concat([ARCHIVE_MAGIC, start, ...collections, TERMINATOR]);
  }

  documents(db: string, collection: string, documents: readonly Uint8Array[]): Buffer {
    const bytes = Buffer.concat(documents);
    this.#crc.add(bytes);
    const header = serialize({ db, collection, EOF: false, CRC: Long.ZERO });
    return documents.length === 0 ? bytes : Buffer.concat([header, bytes, TERMINATOR]);
  }

  endOf(db: string, collection: string): Buffer {
    const header = serialize({ db, collection, EOF: true, CRC: Long.fromBigInt(this.#crc.value) });
    this.#crc = new Crc64();
    return Buffer.concat([header, TERMINATOR]);
  }
}

/** Reads an archive sequentially. */
class ArchiveReader {
  readonly #descriptor: number;
  #bytes = Buffer.alloc(0);

  /** Throws BrokenArchive. */
  constructor(descriptor: number) {
    this.#descriptor = descriptor;
    if (!this.#take(ARCHIVE_MAGIC.length).equals(ARCHIVE_MAGIC))
      throw new BrokenArchive('the file is not an archive');
  }

  /** Whether nothing follows. */
  get isAtEnd(): boolean {
    return !this.#has(1);
  }

  /** The next document; null: end of a list. Throws BrokenArchive. */
  next(): Buffer | null {
    if (!this.#has(TERMINATOR.length)) throw new BrokenArchive('the archive is truncated');
    if (this.#bytes.subarray(0, TERMINATOR.length).equals(TERMINATOR)) {
      this.#take(TERMINATOR.length);
      return null;
    }
    const length = this.#bytes.readInt32LE(0);
    if (length < LEAST_DOCUMENT_BYTES || length > MAX_DOCUMENT_BYTES)
      throw new BrokenArchive(`the archive contains a document of ${length} bytes`);
    return this.#take(length);
  }

  /** Same as next(), for documents of the archive's own format. */
  nextAbout(): Document | null {
    const bytes = this.next();
    try {
      return bytes === null ? null : deserialize(bytes, { useBigInt64: true });
    } catch (error) {
      throw new BrokenArchive(`the archive cannot be read: ${(error as Error).message}`);
    }
  }

  #take(length: number): Buffer {
    if (!this.#has(length)) throw new BrokenArchive('the archive is truncated');
    const bytes = this.#bytes.subarray(0, length);
    this.#bytes = this.#bytes.subarray(length);
    return bytes;
  }

  #has(length: number): boolean {
    if (this.#bytes.length >= length) return true;
    const more = Buffer.allocUnsafe(Math.max(READ_BYTES, length));
    const pieces = [this.#bytes];
    for (let there = this.#bytes.length; there < length; ) {
      const target = more.subarray(there - this.#bytes.length);
      const read = readSync(this.#descriptor, target);
      if (read === 0) return false;
      pieces.push(target.subarray(0, read));
      there += read;
    }
    this.#bytes = Buffer.concat(pieces);
    return true;
  }
}

export interface FoundCollection {
  readonly name: string;
  /** Its database, if it differs from the archive's; null: the archive's. */
  readonly beside?: string | null;
  /** `collection`, `view` or `timeseries`. */
  readonly type: string;
  readonly options: Document;
  /** Indexes except that of `_id`, or of a clustered collection. */
  readonly indexes: readonly Document[];
}

export interface DocumentBatch {
  readonly collection: string;
  /** Like FoundCollection.beside. */
  readonly beside: string | null;
  readonly documents: readonly Buffer[];
}

export interface ArchiveReading {
  /** Approximate size of one read. */
  readonly documents: number;
  readonly bytes: number;
  /** Whether another database with that name may be included. */
  readonly isBeside?: (database: string) => boolean;
}

/** Content of an archive of one database, and of others that may be included. */
export class ArchiveContents {
  readonly collections: readonly FoundCollection[];
  /** Namespaces of the server that are not read, and that a person may miss: users, roles, functions. */
  readonly passedOver: readonly string[];
  readonly #reader: ArchiveReader;
  readonly #batch: ArchiveReading;
  /** The archive's own. */
  #from: string | null = null;

  /** Throws BrokenArchive. */
  constructor(descriptor: number, batch: ArchiveReading) {
    this.#batch = batch;
    this.#reader = new ArchiveReader(descriptor);
    this.#reader.nextAbout();
    const found: Document[] = [];
    const passedOver: Document[] = [];
    for (let about = this.#reader.nextAbout(); about !== null; about = this.#reader.nextAbout())
      (isServers(about) ? passedOver : found).push(about);
    this.passedOver = passedOver
      .filter(isMissed)
      .map(({ db, collection }) => (db ? `${db}.${collection}` : collection));
    const databases = [...new Set(found.map(({ db }) => String(db)))];
    const own = databases.filter((db) => databases.length === 1 || !this.#mayBeBeside(db));
    if (own.length > 1 || (own.length === 0 && databases.length > 1))
      throw severalDatabases(own.length > 1 ? own : databases);
    this.#from = own[0] ?? null;
    this.collections = found.map((about) => collectionOf(about, this.#besideOf(about)));
  }

  /** Call it once. Throws BrokenArchive, also at the end if the archive is incomplete. */
  *batches(): Generator<DocumentBatch> {
    const sums = new Map<string, Crc64>();
    const ended = new Set<string>();
    while (!this.#reader.isAtEnd) {
      const header = this.#reader.nextAbout();
      if (header === null) throw new BrokenArchive('the archive has an end marker without a beginning');
      const collection = String(header.collection);
      const isOurs = !isServers(header);
      const beside = this.#besideOf(header);
      const space = spaceOf(beside, collection);
      const sum = sums.get(space) ?? new Crc64();
      sums.set(space, sum);
      if (header.EOF === true) {
        if (isOurs && BigInt(header.CRC) !== sum.value)
          throw new BrokenArchive('the checksum of the archive does not match');
        if (isOurs) ended.add(space);
        if (this.#reader.next() !== null)
          throw new BrokenArchive('documents follow the end of their collection');
      } else {
        for (const documents of this.#segment()) {
          if (!isOurs) continue;
          for (const each of documents) sum.add(each);
          yield { collection, beside, documents };
        }
      }
    }
    const isCut = ({ name, type, beside = null }: FoundCollection) =>
      type !== 'view' && type !== 'timeseries' && !ended.has(spaceOf(beside, name));
    if (this.collections.some(isCut)) throw new BrokenArchive('the archive is truncated');
  }

  *#segment(): Generator<Buffer[]> {
    let documents: Buffer[] = [];
    let bytes = 0;
    for (let next = this.#reader.next(); next !== null; next = this.#reader.next()) {
      documents.push(next);
      bytes += next.length;
      if (documents.length < this.#batch.documents && bytes < this.#batch.bytes) continue;
      yield documents;
      [documents, bytes] = [[], 0];
    }
    if (documents.length > 0) yield documents;
  }

  #mayBeBeside(database: string): boolean {
    return this.#batch.isBeside?.(database) === true;
  }

  /** Throws BrokenArchive. */
  #besideOf(about: Document): string | null {
    const database = String(about.db);
    this.#from ??= isServers(about) ? null : database;
    if (database === this.#from || isServers(about)) return null;
    if (!this.#mayBeBeside(database)) throw severalDatabases([String(this.#from), database]);
    return database;
  }
}

function severalDatabases([first, second]: readonly string[]): BrokenArchive {
  const how = `make an archive of each with \`mongodump --db ${first} --archive\`, and load it alone`;
  return new BrokenArchive(`the archive contains more than one database: ${first} and ${second}; ${how}`);
}

/** Users and roles of one database (`--dumpDbUsersAndRoles`) are `$admin.system.users` in it. */
const OF_SERVER = /^(?:\$admin\.)?system\./;
/** Written by the server itself: settings, and what it derives from other collections. */
const DERIVED = /^(?:\$admin\.)?system\.(?:version|keys|indexes|namespaces|profile|views|buckets\..*)$/;

/** Whether the collection belongs to the server itself. */
function isServers({ db, collection }: Document): boolean {
  return db === '' || db === 'admin' || db === 'config' || OF_SERVER.test(String(collection));
}

const isMissed = ({ db, collection }: Document) => db !== 'config' && !DERIVED.test(String(collection));

const spaceOf = (beside: string | null, collection: string) => `${beside ?? ''}.${collection}`;

function collectionOf({ collection, metadata, type }: Document, beside: string | null): FoundCollection {
  try {
    const about = EJSON.parse(String(metadata || '{}'), { relaxed: false }) as Document;
    const indexes = ((about.indexes as Document[] | undefined) ?? []).filter(
      ({ name, clustered }) => name !== '_id_' && clustered !== true,
    );
    const kind = String(about.type ?? type ?? 'collection');
    return { name: String(collection), beside, type: kind, options: about.options ?? {}, indexes };
  } catch (error) {
    throw new BrokenArchive(`the metadata of a collection cannot be read: ${(error as Error).message}`);
  }
}

/** Metadata of a collection in archives, as Extended JSON. */
export function metadataOf(name: string, about: Omit<FoundCollection, 'name' | 'beside'>): string {
  return EJSON.stringify({ ...about, collectionName: name }, { relaxed: false });
}
