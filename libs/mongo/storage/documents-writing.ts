/** Writes documents with their index keys, and enforces uniqueness. */
import { type Document, EJSON, ObjectId } from 'bson';
import { CommandError } from '../command-error.ts';
import { DOCUMENT_STEPS, KEY_STEPS, spend } from '../command-time.ts';
import {
  decodeDocument,
  encodeDocument,
  MAX_DOCUMENT_BYTES,
  type RawDocument,
  tooLarge,
} from '../values/bson-documents.ts';
import { namesOf, withFirst } from '../values/field-order.ts';
import { isDocument, leavesAt } from '../values/field-paths.ts';
import { keyOf, TAG, tagOf } from '../values/key-order.ts';
import type { Collection, DocumentsStore } from './documents-store.ts';
import { keysIn } from './index-keys.ts';
import { elementsOf, type Index, orNull, product } from './index-values.ts';
import type { Row } from './stored-rows.ts';
import { assertValid } from './validation.ts';

const NO_ROW = -1;
/** Approximate bytes of keys that are sorted before writing, and the overhead of each. */
const SORTED_BYTES = 16 * 2 ** 20;
const ENTRY_BYTES = 150;

export class DocumentsWriting {
  readonly #store: DocumentsStore;
  readonly #databaseName: string;
  /** The running command bypasses the validators: `bypassDocumentValidation`. */
  isUnchecked = false;

  constructor(store: DocumentsStore, databaseName: string) {
    this.#store = store;
    this.#databaseName = databaseName;
  }

  /** Returns the `_id`, created if missing. Throws CommandError without writing. */
  insert(collection: Collection, bytes: RawDocument): unknown {
    const { document, stored } = withId(bytes);
    if (collection.options.validator && !this.isUnchecked) assertValid(collection.options, document);
    if (stored.length > collection.options.size)
      throw new CommandError('BadValue', 'object to insert exceeds cappedMaxSize');
    const entries = this.#entries(collection, document, NO_ROW);
    const [ids] = collection.indexes as [Index];
    const key = keyOf([document._id], [], ids.collation);
    this.#assertFree(collection, ids, { key, document, rowNumber: NO_ROW });
    const rowNumber = this.#store.insert(collection, key, stored);
    for (const { index, keys } of entries) {
      for (const each of keys) this.#store.addKey(index, each, rowNumber);
      spend(KEY_STEPS * keys.length);
    }
    if (collection.options.capped) this.#removeOldest(collection);
    return document._id;
  }

  /** Removes the documents beyond a capped collection's limits. */
  #removeOldest(collection: Collection): void {
    const { size, max = Number.POSITIVE_INFINITY } = collection.options;
    const isOver = () => collection.bytes > size || collection.documents > max;
    if (!isOver()) return;
    for (const row of this.#store.scan(collection, false)) {
      this.remove(collection, { ...row, document: decodeDocument(row.bytes) });
      if (!isOver()) return;
    }
  }

  /** Replaces a document by one with the same `_id`. Throws CommandError without writing. */
  replace(
    collection: Collection,
    row: Row & { readonly document: Document },
    next: { bytes: RawDocument; document: Document },
  ): void {
    const { options } = collection;
    if (options.validator && !this.isUnchecked) assertValid(options, next.document, row.document);
    const entries = this.#entries(collection, next.document, row.rowNumber);
    this.#store.replace(collection, row, next.bytes);
    for (const { index, keys } of entries) {
      const old = keysIn(index, row.document);
      for (const key of old) if (!holds(keys, key)) this.#store.removeKey(index, key, row.rowNumber);
      for (const key of keys) if (!holds(old, key)) this.#store.addKey(index, key, row.rowNumber);
    }
  }

  remove(collection: Collection, row: Row & { readonly document: Document }): void {
    for (const index of collection.indexes.slice(1)) {
      for (const key of keysIn(index, row.document)) this.#store.removeKey(index, key, row.rowNumber);
    }
    this.#store.remove(collection, row);
  }

  /** Creates an index over existing documents. Throws CommandError. */
  createIndex(collection: Collection, spec: Document): void {
    const index = this.#store.createIndex(collection, spec);
    let entries: { key: Buffer; rowNumber: number }[] = [];
    let bytes = 0;
    const write = () => {
      // Unsorted, nearly each key would be written to another page.
      entries.sort((one, other) => Buffer.compare(one.key, other.key));
      for (const { key, rowNumber } of entries) {
        if (index.isUnique) this.#assertFree(collection, index, { key, rowNumber, document: null });
        this.#store.addKey(index, key, rowNumber);
        spend(KEY_STEPS);
      }
      [entries, bytes] = [[], 0];
    };
    for (const { rowNumber, bytes: stored } of this.#store.scan(collection, false)) {
      spend(DOCUMENT_STEPS);
      for (const key of this.#keys(index, decodeDocument(stored))) {
        entries.push({ key, rowNumber });
        bytes += key.length + ENTRY_BYTES;
      }
      if (bytes > SORTED_BYTES) write();
    }
    write();
  }

  #entries(
    collection: Collection,
    document: Document,
    rowNumber: number,
  ): { index: Index; keys: Buffer[] }[] {
    return collection.indexes.slice(1).map((index) => {
      const keys = this.#keys(index, document);
      if (index.isUnique)
        for (const key of keys) this.#assertFree(collection, index, { key, document, rowNumber });
      return { index, keys };
    });
  }

  #keys(index: Index, document: Document): Buffer[] {
    const wasMultikey = index.isMultikey;
    const keys = keysIn(index, document);
    if (index.isMultikey && !wasMultikey) this.#store.markMultikey(index);
    return keys;
  }

  /** `document`: null when it is stored at that position. */
  #assertFree(
    collection: Collection,
    index: Index,
    { key, document, rowNumber }: { key: Buffer; document: Document | null; rowNumber: number },
  ): void {
    if (this.#store.rowNumberOf(collection, index, { key, except: rowNumber }) === undefined) return;
    const refused =
      document ?? decodeDocument(this.#store.byRowNumber(collection, rowNumber)?.bytes as RawDocument);
    const values = valuesOfKey(index, refused, key);
    const keyValue = Object.fromEntries(index.fields.map(({ path }, i) => [path.join('.'), values[i]]));
    const shown = EJSON.stringify(keyValue, { relaxed: true })
      .replace(/"([^"]+)":/g, ' $1: ')
      .replace(/}$/, ' }');
    throw new CommandError(
      'DuplicateKey',
      `E11000 duplicate key error collection: ${this.#databaseName}.${collection.name} index: ${index.name} dup key: ${shown}`,
      { keyPattern: index.spec.key, keyValue },
    );
  }
}

/** The values of a document for its keys: for lists, one per element. */
function valuesOfKey(index: Index, document: Document, key: Buffer): unknown[] {
  const lists = index.fields.map(({ path }) => leavesAt(document, path));
  const isMany = lists.some(([first], i) => (lists[i]?.length ?? 0) > 1 || Array.isArray(first));
  const found =
    isMany && !index.isSpecial
      ? product(lists.map((leaves) => leaves.flatMap(elementsOf))).find((values) =>
          keyOf(values.map(orNull), index.descending, index.collation).equals(key),
        )
      : undefined;
  return (found?.map(orNull) ?? lists.map(([first]) => first)).map((value) => value ?? null);
}

function holds(keys: readonly Buffer[], key: Buffer): boolean {
  return keys.some((each) => each.equals(key));
}

function withId(bytes: RawDocument): { document: Document; stored: RawDocument } {
  if (bytes.length > MAX_DOCUMENT_BYTES) throw tooLarge(bytes.length);
  const document = decodeDocument(bytes);
  if (!('_id' in document)) {
    const whole = withFirst('_id', new ObjectId(), document);
    return { document: whole, stored: encodeDocument(whole) };
  }
  assertId(document._id);
  if (namesOf(document)[0] === '_id') return { document, stored: bytes };
  return { document, stored: encodeDocument(withFirst('_id', document._id, document)) };
}

/** Throws CommandError for values that cannot be an `_id`. */
export function assertId(id: unknown): void {
  const tag = tagOf(id);
  const name =
    tag === TAG.array ? 'array' : tag === TAG.regex ? 'regex' : tag === TAG.undefined ? 'undefined' : null;
  if (name !== null) throw new CommandError('InvalidIdField', `The '_id' value cannot be of type ${name}`);
  const dollar = isDocument(id) ? Object.keys(id).find((key) => key.startsWith('$')) : undefined;
  if (dollar !== undefined)
    throw new CommandError(
      'DollarPrefixedFieldName',
      `_id fields may not contain '$'-prefixed fields: ${dollar} is not valid for storage.`,
    );
}
