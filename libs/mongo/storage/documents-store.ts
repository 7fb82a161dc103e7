/** Documents as BSON, and the keys of their indexes, in one SQLite file. */
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';
import { type Document, UUID } from 'bson';
import { hostSpace, isShrinkable, shrinkFile } from '../../sqlite/index.ts';
import { CommandError } from '../command-error.ts';
import { encodeDocument, type RawDocument } from '../values/bson-documents.ts';
import { idIndex, indexOf } from './index-keys.ts';
import type { Index } from './index-values.ts';
import { noteCommit, wasCommitted } from './store-file.ts';
import { readCatalog } from './stored-catalog.ts';
import { asCommandError, asRow, checksumOf, pages, type Row } from './stored-rows.ts';

const MAX_STATEMENTS = 500;

export interface Collection {
  readonly id: number;
  readonly name: string;
  readonly uuid: UUID;
  /** Options given to `create`. */
  options: Document;
  /** The first index is on `_id` and has the collation of the collection. */
  indexes: Index[];
  documents: number;
  bytes: number;
}

/** Keys from `low` up to `high`, exclusive; null: no end. */
export interface KeyRange {
  readonly low: Uint8Array | null;
  readonly high: Uint8Array | null;
}

/** The smallest key above all with this prefix. */
export function afterPrefix(prefix: Uint8Array): Uint8Array {
  return Buffer.concat([prefix, Buffer.from([255])]);
}

export class DocumentsStore {
  readonly #database: DatabaseSync;
  readonly #sizeLimit: () => number | null;
  readonly #statements = new Map<string, StatementSync>();
  readonly #changed = new Set<Collection>();
  /** The current transaction has changed the catalog. */
  #isCatalogChanged = false;
  /** A multi-command transaction is open, and has written. */
  #isHeld = false;
  #isWriting = false;
  #collections = new Map<string, Collection>();
  #limit: number | null | undefined;
  /** Growth of the file that the host allowed when `max_page_count` was last set. */
  #growth = 0;

  /** Its catalog is read by load() or begin(). */
  constructor(database: DatabaseSync, sizeLimit: () => number | null) {
    this.#sizeLimit = sizeLimit;
    this.#database = database;
  }

  close(): void {
    this.#database.close();
  }

  /** Reads the catalog, again when another connection changed it. */
  load(): void {
    this.#collections = readCatalog(this.#database);
    this.#isCatalogChanged = false;
  }

  /** Reads again everything that a rolled-back transaction changed. */
  #reload(): void {
    if (this.#isCatalogChanged) this.load();
    for (const collection of this.#changed) {
      const [row] = this.#all('SELECT documents, bytes FROM collections WHERE id = ?', collection.id);
      Object.assign(collection, { documents: Number(row?.documents), bytes: Number(row?.bytes) });
    }
  }

  #prepare(sql: string): StatementSync {
    const there = this.#statements.get(sql);
    if (there !== undefined) return there;
    if (this.#statements.size >= MAX_STATEMENTS) this.#statements.clear();
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  #all(sql: string, ...values: (SQLInputValue | undefined)[]): Record<string, SQLOutputValue>[] {
    return this.#prepare(sql).all(...(values as SQLInputValue[]));
  }

  #run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#prepare(sql).run(...values).lastInsertRowid);
  }

  /**
   * Runs `work` in a transaction, rolled back if it throws; if one is open already, its caller
   * rolls back. Throws CommandError if the file is full.
   */
  transaction<T>(work: () => T): T {
    if (this.#isHeld) {
      // Throws at once if another one writes, or wrote since this one began.
      if (!this.#isWriting) this.#run('UPDATE collections SET id = id WHERE id = -1');
      this.#isWriting = true;
      return this.#write(work);
    }
    this.#begin('IMMEDIATE');
    try {
      const result = this.#write(work);
      this.#database.exec('COMMIT');
      return result;
    } catch (error) {
      // SQLite has rolled it back already if the file is full.
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      this.#reload();
      throw error;
    } finally {
      this.#changed.clear();
    }
  }

  #begin(how: 'IMMEDIATE' | 'DEFERRED'): void {
    this.#limitSize();
    this.#isCatalogChanged = false;
    this.#database.exec(`BEGIN ${how}`);
  }

  #write<T>(work: () => T): T {
    try {
      const result = work();
      for (const { id, documents, bytes } of this.#changed)
        this.#run('UPDATE collections SET documents = ?, bytes = ? WHERE id = ?', documents, bytes, id);
      return result;
    } catch (error) {
      throw asCommandError(error);
    }
  }

  /** Begins a multi-command transaction on the current state; `isWriting`: it is the only writer. */
  begin(isWriting: boolean): void {
    this.#begin(isWriting ? 'IMMEDIATE' : 'DEFERRED');
    this.#isHeld = true;
    this.#isWriting = isWriting;
    this.load();
  }

  /** Commits a transaction begun with begin(), and records that. */
  commit(session: string, number: bigint, at: number): void {
    if (this.#isWriting) noteCommit(this.#database, { session, number, at });
    this.#database.exec('COMMIT');
  }

  wasCommitted(session: string, number: bigint): boolean {
    return wasCommitted(this.#database, session, number);
  }

  /** Whether a multi-command transaction blocks other writers. */
  get isWriting(): boolean {
    return this.#isHeld && this.#isWriting && this.#database.isTransaction;
  }

  #limitSize(): void {
    const limit = this.#sizeLimit();
    const growth = Math.min(limit ?? 0, hostSpace.growthBytes());
    if (limit === this.#limit && growth === this.#growth) return;
    const pageBytes = this.#pragma('page_size');
    const most = limit === null ? 0 : hostSpace.limitFor(this.fileBytes().total, limit);
    // SQLite never goes below the current number of pages.
    this.#database.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(most / pageBytes))}`);
    this.#limit = limit;
    this.#growth = growth;
  }

  /** Size of the file, and its free space. */
  fileBytes(): { total: number; free: number } {
    const pageBytes = this.#pragma('page_size');
    return {
      total: this.#pragma('page_count') * pageBytes,
      free: this.#pragma('freelist_count') * pageBytes,
    };
  }

  /** Bytes of an index's keys. */
  indexBytes(collection: Collection, index: Index): number {
    const sql = `SELECT total(length(k) + 8) AS bytes FROM ${tableOf(collection, index)}`;
    return Number(this.#all(sql)[0]?.bytes);
  }

  collections(): Collection[] {
    return [...this.#collections.values()];
  }

  /** Tables of collections and of their indexes. */
  get tables(): number {
    return this.collections().reduce((count, { indexes }) => count + indexes.length, 0);
  }

  collection(name: string): Collection | undefined {
    return this.#collections.get(name);
  }

  create(name: string, options: Document = {}): Collection {
    this.#isCatalogChanged = true;
    const uuid = new UUID();
    const sql = 'INSERT INTO collections(name, uuid, options, documents, bytes) VALUES (?, ?, ?, 0, 0)';
    const id = this.#run(sql, name, uuid.buffer, encodeDocument(options));
    this.#database.exec(
      `CREATE TABLE c${id} (n INTEGER PRIMARY KEY, k BLOB NOT NULL UNIQUE, d BLOB NOT NULL, s INTEGER) STRICT`,
    );
    const collection = { id, name, uuid, options, indexes: [idIndex(options)], documents: 0, bytes: 0 };
    this.#collections.set(name, collection);
    return collection;
  }

  setOptions(collection: Collection, options: Document): void {
    this.#isCatalogChanged = true;
    this.#run('UPDATE collections SET options = ? WHERE id = ?', encodeDocument(options), collection.id);
    collection.options = options;
    collection.indexes[0] = idIndex(options);
  }

  drop(collection: Collection): void {
    this.#isCatalogChanged = true;
    for (const index of collection.indexes.slice(1).toReversed()) this.dropIndex(collection, index);
    this.#statements.clear();
    this.#database.exec(`DROP TABLE c${collection.id}`);
    this.#run('DELETE FROM collections WHERE id = ?', collection.id);
    this.#collections.delete(collection.name);
    this.#changed.delete(collection);
  }

  /** Drops everything. The file's last page goes first: then SQLite moves no table into freed pages. */
  dropAll(): void {
    this.#isCatalogChanged = true;
    const tables = this.#all(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB '[ci][0-9]*'
      ORDER BY rootpage DESC`);
    this.#statements.clear();
    for (const { name } of tables) this.#database.exec(`DROP TABLE ${name}`);
    this.#database.exec('DELETE FROM collections; DELETE FROM indexes');
    this.#collections.clear();
    this.#changed.clear();
  }

  /** Renames a collection; the new name must be free. */
  rename(collection: Collection, name: string): void {
    this.#isCatalogChanged = true;
    this.#run('UPDATE collections SET name = ? WHERE id = ?', name, collection.id);
    this.#collections.delete(collection.name);
    this.#collections.set(name, { ...collection, name });
  }

  /** Returns free pages to the disk, a few at a time. `now`: monotonic, ms. */
  shrink(now: () => number): void {
    const freePages = this.#pragma('freelist_count');
    if (isShrinkable({ freePages, isUsed: false })) shrinkFile(this.#database, freePages, now);
  }

  #pragma(name: string): number {
    return Number(Object.values(this.#prepare(`PRAGMA ${name}`).get() ?? {})[0]);
  }

  createIndex(collection: Collection, spec: Document): Index {
    this.#isCatalogChanged = true;
    const sql = 'INSERT INTO indexes(collection, spec, multikey) VALUES (?, ?, 0)';
    const id = this.#run(sql, collection.id, encodeDocument(spec));
    this.#database.exec(
      `CREATE TABLE i${id} (k BLOB NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (k, n)) STRICT, WITHOUT ROWID`,
    );
    const index = indexOf(spec, { id, isMultikey: false });
    collection.indexes.push(index);
    return index;
  }

  dropIndex(collection: Collection, index: Index): void {
    this.#isCatalogChanged = true;
    this.#statements.clear();
    this.#database.exec(`DROP TABLE i${index.id}`);
    this.#run('DELETE FROM indexes WHERE id = ?', index.id);
    collection.indexes = collection.indexes.filter(({ id }) => id !== index.id);
  }

  /** Changes an index's options, where its keys stay the same. */
  setSpec(collection: Collection, { id, isMultikey }: Index, spec: Document): void {
    this.#isCatalogChanged = true;
    this.#run('UPDATE indexes SET spec = ? WHERE id = ?', encodeDocument(spec), id);
    const changed = indexOf(spec, { id, isMultikey });
    collection.indexes = collection.indexes.map((index) => (index.id === id ? changed : index));
  }

  markMultikey(index: Index): void {
    this.#isCatalogChanged = true;
    this.#run('UPDATE indexes SET multikey = 1 WHERE id = ?', index.id);
  }

  /** Returns its row number. The key must not exist. */
  insert(collection: Collection, key: Uint8Array, bytes: RawDocument): number {
    const sql = `INSERT INTO c${collection.id}(k, d, s) VALUES (?, ?, ?)`;
    const rowNumber = this.#run(sql, key, bytes, checksumOf(key, bytes));
    this.#count(collection, { documents: 1, bytes: bytes.length });
    return rowNumber;
  }

  /** Changes the key of a document's `_id`. */
  setKey(collection: Collection, { rowNumber, bytes }: Row, key: Uint8Array): void {
    const sql = `UPDATE c${collection.id} SET k = ?, s = ? WHERE n = ?`;
    this.#run(sql, key, checksumOf(key, bytes), rowNumber);
  }

  replace(collection: Collection, row: Row, bytes: RawDocument): void {
    const sql = `UPDATE c${collection.id} SET d = ?, s = ? WHERE n = ?`;
    this.#run(sql, bytes, checksumOf(row.key, bytes), row.rowNumber);
    this.#count(collection, { documents: 0, bytes: bytes.length - row.bytes.length });
  }

  remove(collection: Collection, row: Row): void {
    this.#run(`DELETE FROM c${collection.id} WHERE n = ?`, row.rowNumber);
    this.#count(collection, { documents: -1, bytes: -row.bytes.length });
  }

  #count(collection: Collection, more: { documents: number; bytes: number }): void {
    collection.documents += more.documents;
    collection.bytes += more.bytes;
    this.#changed.add(collection);
  }

  addKey(index: Index, key: Uint8Array, rowNumber: number): void {
    this.#run(`INSERT INTO i${index.id}(k, n) VALUES (?, ?)`, key, rowNumber);
  }

  removeKey(index: Index, key: Uint8Array, rowNumber: number): void {
    this.#run(`DELETE FROM i${index.id} WHERE k = ? AND n = ?`, key, rowNumber);
  }

  /** Row number of the document with that key, other than `except`. */
  rowNumberOf(
    collection: Collection,
    index: Index,
    { key, except }: { key: Uint8Array; except: number },
  ): number | undefined {
    const row = this.#prepare(
      `SELECT n FROM ${tableOf(collection, index)} WHERE k = ? AND n <> ? LIMIT 1`,
    ).get(key, except);
    return row === undefined ? undefined : Number(row.n);
  }

  /** The document of that `_id`. */
  byKey(collection: Collection, key: Uint8Array): Row | undefined {
    return asRow(this.#prepare(`SELECT n, k AS own, d, s FROM c${collection.id} WHERE k = ?`).get(key));
  }

  byRowNumber(collection: Collection, rowNumber: number): Row | undefined {
    return asRow(this.#prepare(`SELECT n, k AS own, d, s FROM c${collection.id} WHERE n = ?`).get(rowNumber));
  }

  /** All documents after a row, in natural order. Concurrent writes may or may not be seen. */
  scan(collection: Collection, isReverse: boolean, after = -1): Generator<Row> {
    const [compare, order, start] = isReverse ? ['<', 'DESC', Number.MAX_SAFE_INTEGER] : ['>', 'ASC', after];
    const sql = `SELECT n, k AS own, d, s FROM c${collection.id} WHERE n ${compare} ? ORDER BY n ${order} LIMIT ?`;
    return pages(collection, (last, rows) =>
      this.#read(sql).all(last === null ? start : (last.n ?? 0), rows),
    );
  }

  /** The documents of an index in the order of their keys; of a multikey index maybe more than once. */
  scanIndex(
    collection: Collection,
    index: Index,
    { low, high, isReverse }: KeyRange & { isReverse: boolean },
  ): Generator<Row> {
    const [compare, order] = isReverse ? ['<', 'DESC'] : ['>', 'ASC'];
    const from =
      index.id === 0
        ? `c${collection.id} AS i`
        : `i${index.id} AS i JOIN c${collection.id} AS c ON c.n = i.n`;
    const own = index.id === 0 ? 'i.k' : 'c.k';
    const sql = (condition: string) => `SELECT i.k, i.n, ${own} AS own, d, s FROM ${from}
      WHERE ${condition} i.k >= ? AND i.k < ? ORDER BY i.k ${order}, i.n ${order} LIMIT ?`;
    const [first, next] = [sql(''), sql(`(i.k, i.n) ${compare} (?, ?) AND`)];
    const bounds = [low ?? Buffer.alloc(0), high ?? Buffer.from([255])];
    return pages(collection, (last, rows) =>
      last === null
        ? this.#read(first).all(...bounds, rows)
        : this.#read(next).all(last.k ?? null, last.n ?? null, ...bounds, rows),
    );
  }

  /** Throws CommandError if a cursor's source was dropped meanwhile. */
  #read(sql: string): StatementSync {
    try {
      return this.#prepare(sql);
    } catch (error) {
      if (!(error as Error).message.startsWith('no such table')) throw error;
      throw new CommandError(175, 'collection or index dropped while a cursor read it');
    }
  }
}

/** The table of an index; keys of `_id` are stored with the documents. */
function tableOf(collection: Collection, { id }: Index): string {
  return id === 0 ? `c${collection.id}` : `i${id}`;
}
