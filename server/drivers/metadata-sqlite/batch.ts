/**
 * What passes between the main thread and the writer. Cloning objects is what costs the main thread
 * most, so a batch is one flat array: SQL texts are sent once and then named by number, and all bytes
 * go into one buffer that is handed over without a copy.
 */
import type { SqlValue, Statement } from '../../metadata/metadata.ts';

/**
 * Per commit: number of statements. Per statement: number of its SQL, rows expected to change (−1: any),
 * number of params. Per param: the value; or `true` and a length, the next bytes of the buffer; or `false`
 * and the index of the statement whose row id it stands for.
 */
type Word = number | string | bigint | null | boolean;

export interface BatchMessage {
  readonly kind: 'batch';
  /** Forget every SQL text known before. */
  readonly resetSql: boolean;
  /** Texts not sent before; they get the next numbers. */
  readonly newSql: readonly string[];
  readonly commits: number;
  readonly words: readonly Word[];
  readonly bytes: ArrayBuffer;
}

export type WriterRequest = BatchMessage | { readonly kind: 'close' };

/** Why one commit was rolled back; `fault` is a mistake in the statement itself. */
export interface CommitFailure {
  readonly commit: number;
  readonly index: number;
  readonly reason: 'expectation' | 'unique' | 'foreign_key' | 'check' | 'fault';
  readonly detail: string;
}

/** Why a whole batch is not stored; after `broken` the writer takes no more. */
export interface BatchFailure {
  readonly reason: 'full' | 'busy' | 'broken';
  readonly detail: string;
}

export type WriterReply =
  | { readonly kind: 'ready' }
  | { readonly kind: 'unusable'; readonly message: string }
  /**
   * `results`: changes and last row id of each statement of each commit in order; failed commits have none.
   */
  | { readonly kind: 'stored'; readonly results: Float64Array; readonly failures: readonly CommitFailure[] }
  | { readonly kind: 'failed'; readonly failure: BatchFailure }
  /** After a checkpoint was due: bytes that still wait in the log, and what went wrong, if anything. */
  | { readonly kind: 'checkpoint'; readonly logBytes: number; readonly error: string | null };

const MAX_SQL_TEXTS = 1000;

/**
 * Numbers the SQL texts. Statements are constant text, so this stays small; a program that makes texts is
 * bounded all the same.
 */
export class SqlNumbers {
  readonly #numbers = new Map<string, number>();
  #fresh: string[] = [];

  /** Begins a batch; true when the numbering starts anew. */
  begin(): boolean {
    this.#fresh = [];
    if (this.#numbers.size < MAX_SQL_TEXTS) return false;
    this.#numbers.clear();
    return true;
  }

  numberOf(sql: string): number {
    const known = this.#numbers.get(sql);
    if (known !== undefined) return known;
    const number = this.#numbers.size;
    this.#numbers.set(sql, number);
    this.#fresh.push(sql);
    return number;
  }

  /** Texts first numbered in this batch. */
  fresh(): readonly string[] {
    return this.#fresh;
  }
}

/** Packs commits for the writer. Bytes are copied: the caller may reuse its buffers afterwards. */
export function packBatch(numbers: SqlNumbers, commits: readonly (readonly Statement[])[]): BatchMessage {
  const resetSql = numbers.begin();
  const words: Word[] = [];
  const blobs: Uint8Array[] = [];
  for (const statements of commits) {
    words.push(statements.length);
    for (const { sql, params, expectChanges } of statements) {
      words.push(numbers.numberOf(sql), expectChanges ?? -1, params.length);
      for (const param of params) {
        if (param instanceof Uint8Array) {
          blobs.push(param);
          words.push(true, param.byteLength);
        } else if (typeof param === 'object' && param !== null) words.push(false, param.rowIdOf);
        else words.push(param);
      }
    }
  }
  return {
    kind: 'batch',
    resetSql,
    newSql: numbers.fresh(),
    commits: commits.length,
    words,
    bytes: concatenate(blobs),
  };
}

function concatenate(blobs: readonly Uint8Array[]): ArrayBuffer {
  let length = 0;
  for (const blob of blobs) length += blob.byteLength;
  const all = new Uint8Array(length);
  let offset = 0;
  for (const blob of blobs) {
    all.set(blob, offset);
    offset += blob.byteLength;
  }
  return all.buffer;
}

/** Reads a batch in the order in which packBatch wrote it. */
export class BatchCursor {
  readonly #words: readonly Word[];
  readonly #bytes: ArrayBuffer;
  #at = 0;
  #byteAt = 0;

  constructor(message: BatchMessage) {
    this.#words = message.words;
    this.#bytes = message.bytes;
  }

  number(): number {
    return this.#words[this.#at++] as number;
  }

  /** The next param; `rowIds` are those of the statements of this commit so far. */
  param(rowIds: readonly number[]): SqlValue {
    const word = this.#words[this.#at++] as Word;
    if (word === true) {
      const length = this.number();
      const bytes = Buffer.from(this.#bytes, this.#byteAt, length);
      this.#byteAt += length;
      return bytes;
    }
    if (word !== false) return word;
    const index = this.number();
    const rowId = rowIds[index];
    if (rowId === undefined) throw new RangeError(`rowIdOf ${index} names no earlier statement`);
    return rowId;
  }

  /** Passes over one statement, after its SQL number was read or not. */
  skipStatements(count: number): void {
    for (let i = 0; i < count; i++) {
      this.#at += 2;
      this.skipParams(this.number());
    }
  }

  skipParams(count: number): void {
    for (let i = 0; i < count; i++) {
      const word = this.#words[this.#at++];
      if (word === true) this.#byteAt += this.number();
      else if (word === false) this.#at += 1;
    }
  }
}
