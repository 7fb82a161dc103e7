/** The end of a capped collection, for tailable cursors: new documents come after it. */
import type { UUID } from 'bson';
import { CommandError } from '../command-error.ts';
import type { RawDocument } from '../values/bson-documents.ts';
import { type ReadOptions, readDocuments } from './documents-reading.ts';
import type { DocumentsStore } from './documents-store.ts';
import type { FoundDocument, Row } from './stored-rows.ts';

export interface TailOptions extends ReadOptions {
  /** Bytes of a document in a reply. */
  show(found: FoundDocument): RawDocument;
  /** The client waits for new documents (awaitData). */
  readonly awaitsData: boolean;
}

/** Unlike other iterators, it may return more documents after an end. */
export class Tail implements Iterator<RawDocument> {
  readonly #store: DocumentsStore;
  readonly #name: string;
  readonly #uuid: UUID | undefined;
  readonly #options: TailOptions;
  #reader: Iterator<FoundDocument> | null = null;
  #last: Pick<Row, 'rowNumber' | 'key'> | null = null;
  #next: RawDocument | null = null;

  constructor(store: DocumentsStore, name: string, options: TailOptions) {
    this.#store = store;
    this.#name = name;
    this.#uuid = store.collection(name)?.uuid;
    this.#options = options;
  }

  get awaitsData(): boolean {
    return this.#options.awaitsData;
  }

  /** Throws CommandError if the last returned document or the collection no longer exists. */
  next(): IteratorResult<RawDocument, undefined> {
    const kept = this.#next;
    this.#next = null;
    if (kept !== null) return { value: kept, done: false };
    this.#reader ??= this.#open();
    const { value, done } = this.#reader.next();
    if (done) {
      this.#reader = null;
      return { value: undefined, done };
    }
    this.#last = { rowNumber: value.rowNumber, key: value.key };
    return { value: this.#options.show(value), done: false };
  }

  /** Returns `document` again as the next one. */
  putBack(document: RawDocument): void {
    this.#next = document;
  }

  #open(): Iterator<FoundDocument> {
    const collection = this.#store.collection(this.#name);
    if (collection === undefined || !this.#uuid?.equals(collection.uuid))
      throw new CommandError(175, 'collection dropped while a cursor read it');
    const last = this.#last;
    if (last !== null) {
      const there = this.#store.byRowNumber(collection, last.rowNumber);
      if (there === undefined || Buffer.compare(there.key, last.key) !== 0)
        throw new CommandError(
          'CappedPositionLost',
          `CollectionScan died due to failure to restore tailable cursor position. Last seen record id: RecordId(${last.rowNumber})`,
        );
    }
    return readDocuments(this.#store, collection, { ...this.#options, after: last?.rowNumber ?? -1 });
  }
}
