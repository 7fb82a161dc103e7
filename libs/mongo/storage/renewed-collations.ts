/** Rebuilds keys of another ICU version, which may compare texts differently. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { decodeDocument } from '../values/bson-documents.ts';
import { COLLATION_VERSION, type Collation } from '../values/collations.ts';
import { keyOf } from '../values/key-order.ts';
import type { Collection, DocumentsStore } from './documents-store.ts';
import type { DocumentsWriting } from './documents-writing.ts';
import type { Index } from './index-values.ts';

/** Call before any command. A collection where two documents would now share a key stays unchanged. */
export function renewCollations(store: DocumentsStore, writing: DocumentsWriting): void {
  for (const { name, indexes } of store.collections()) {
    if (!indexes.some(isStale)) continue;
    try {
      store.transaction(() => renew(store.collection(name) as Collection, store, writing));
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
    }
  }
}

function isStale({ spec }: Index): boolean {
  return spec.collation !== undefined && spec.collation.version !== COLLATION_VERSION;
}

function renew(collection: Collection, store: DocumentsStore, writing: DocumentsWriting): void {
  const [ids, ...others] = collection.indexes as [Index, ...Index[]];
  if (isStale(ids)) renewIds(collection, ids, store);
  for (const index of others.filter(isStale)) {
    store.dropIndex(collection, index);
    writing.createIndex(collection, { ...index.spec, collation: (index.collation as Collation).spec });
  }
}

function renewIds(collection: Collection, ids: Index, store: DocumentsStore): void {
  const options: Document = { ...collection.options, collation: (ids.collation as Collation).spec };
  for (const row of store.scan(collection, false)) {
    const key = keyOf([decodeDocument(row.bytes)._id], [], ids.collation);
    if (store.rowNumberOf(collection, ids, { key, except: row.rowNumber }) !== undefined)
      throw new CommandError('DuplicateKey', `two documents of ${collection.name} now have the same _id`);
    store.setKey(collection, row, key);
  }
  store.setOptions(collection, options);
}
