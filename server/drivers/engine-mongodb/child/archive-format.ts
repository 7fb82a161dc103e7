/** Archives as `mongodump --archive` writes them and `mongorestore --archive` reads them. */
import { readSync, writeSync } from 'node:fs';
import { type Document, deserialize, Long, serialize } from 'bson';
import { Crc64 } from './crc64.ts';

/** What a tenant sent, in the folder of the database. */
export const ARCHIVE_FILE = 'archive';
export const ARCHIVE_MAGIC: Buffer = Buffer.from([0x6d, 0xe2, 0x99, 0x81]);
const TERMINATOR = Buffer.from([0xff, 0xff, 0xff, 0xff]);
/** A document of 16 MiB, and what a server adds to it. */
const MAX_DOCUMENT_BYTES = 16 * 2 ** 20 + 16 * 1024;
const LEAST_DOCUMENT_BYTES = 5;
const READ_BYTES = 1024 * 1024;

export interface CollectionAbout {
  readonly db: string;
  readonly collection: string;
  /** Extended JSON: `{"options": {}, "indexes": []}`. */
  readonly metadata: string;
}

/** The archive is not whole, or is none. */
export class BrokenArchive extends Error {
  constructor(what: string) {
    super(what);
    this.name = 'BrokenArchive';
  }
}

export class ArchiveWriter {
  readonly #descriptor: number;
  #crc = new Crc64();

  /** `descriptor`: of an empty file. */
  constructor(descriptor: number, version: string) {
    this.#descriptor = descriptor;
    const about = { concurrent_collections: 1, version: '0.1', server_version: version };
    this.#write(ARCHIVE_MAGIC, serialize({ ...about, tool_version: 'cloudlet' }));
  }

  /** All that there are, before anything else. */
  collections(all: readonly CollectionAbout[]): void {
    for (const about of all) this.#write(serialize({ ...about, size: 0, type: 'collection' }));
    this.#write(TERMINATOR);
  }

  documents(db: string, collection: string, documents: readonly Uint8Array[]): void {
    if (documents.length === 0) return;
    const bytes = Buffer.concat(documents);
    this.#crc.add(bytes);
    this.#write(serialize({ db, collection, EOF: false, CRC: Long.ZERO }), bytes, TERMINATOR);
  }

  endOf(db: string, collection: string): void {
    this.#write(serialize({ db, collection, EOF: true, CRC: Long.fromBigInt(this.#crc.value) }), TERMINATOR);
    this.#crc = new Crc64();
  }

  #write(...pieces: readonly Uint8Array[]): void {
    const bytes = Buffer.concat(pieces);
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#descriptor, bytes, at);
  }
}

/** One after the other. */
export class ArchiveReader {
  readonly #descriptor: number;
  #bytes = Buffer.alloc(0);

  /** Throws BrokenArchive. */
  constructor(descriptor: number) {
    this.#descriptor = descriptor;
    if (!this.#take(ARCHIVE_MAGIC.length).equals(ARCHIVE_MAGIC)) throw new BrokenArchive('it is no archive');
  }

  /** Whether nothing follows. */
  get isAtEnd(): boolean {
    return !this.#has(1);
  }

  /** The next document; null: a list of documents ends. Throws BrokenArchive. */
  next(): Buffer | null {
    if (!this.#has(TERMINATOR.length)) throw new BrokenArchive('its end is missing');
    if (this.#bytes.subarray(0, TERMINATOR.length).equals(TERMINATOR)) {
      this.#take(TERMINATOR.length);
      return null;
    }
    const length = this.#bytes.readInt32LE(0);
    if (length < LEAST_DOCUMENT_BYTES || length > MAX_DOCUMENT_BYTES)
      throw new BrokenArchive(`it holds a document of ${length} bytes`);
    return this.#take(length);
  }

  /** As next(), of our own making or of mongodump's. */
  nextAbout(): Document | null {
    const bytes = this.next();
    try {
      return bytes === null ? null : deserialize(bytes, { useBigInt64: true });
    } catch (error) {
      throw new BrokenArchive(`it cannot be read: ${(error as Error).message}`);
    }
  }

  #take(length: number): Buffer {
    if (!this.#has(length)) throw new BrokenArchive('its end is missing');
    const bytes = this.#bytes.subarray(0, length);
    this.#bytes = this.#bytes.subarray(length);
    return bytes;
  }

  #has(length: number): boolean {
    if (this.#bytes.length >= length) return true;
    const more = Buffer.allocUnsafe(Math.max(READ_BYTES, length));
    const pieces = [this.#bytes];
    for (let there = this.#bytes.length; there < length; ) {
      const room = more.subarray(there - this.#bytes.length);
      const read = readSync(this.#descriptor, room);
      if (read === 0) return false;
      pieces.push(room.subarray(0, read));
      there += read;
    }
    this.#bytes = Buffer.concat(pieces);
    return true;
  }
}
