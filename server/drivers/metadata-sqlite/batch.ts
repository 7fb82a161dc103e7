/**
 * Encoding of batches between the main thread and the writer. Cloning objects is the main thread's largest
 * cost, so a batch is one flat array: SQL texts are sent once and then referenced by number, the shape of
 * similar commits is sent once, and all bytes are in one buffer that is transferred without a copy.
 */
import { type Increment, isIncrement, type SqlValue, type Statement } from '../../metadata/metadata.ts';

/**
 * Groups of commits, one after the other. A group: number of commits, number of statements of each;
 * per statement: number of its SQL, rows expected to change (−1: any), number of params, and 1 if
 * it is present once for the whole group; then per commit the params of its other statements, then
 * those of the statements for the whole group. A param: the value; or `true` and a length, the next
 * bytes of the buffer; or `false` and the index of the statement whose row id it represents.
 */
type Token = number | string | bigint | null | boolean;

export interface BatchMessage {
  readonly kind: 'batch';
  /** Forget every SQL text known before. */
  readonly resetSql: boolean;
  /** Texts not sent before; they get the next numbers. */
  readonly newSql: readonly string[];
  /** Runs each commit in its own savepoint, to be stored or refused separately. */
  readonly isolated: boolean;
  readonly commits: number;
  readonly tokens: readonly Token[];
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

/** Why a whole batch is not stored; after `broken` the writer accepts no more batches. */
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
  /** Nothing is stored because a rule refused something: send the batch again, isolated. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed'; readonly failure: BatchFailure }
  /** After a checkpoint was due: bytes that still wait in the log, and what went wrong, if anything. */
  | { readonly kind: 'checkpoint'; readonly logBytes: number; readonly error: string | null };

const MAX_SQL_TEXTS = 1000;

/**
 * Numbers the SQL texts. Statements are constant text, so this stays small; the limit protects
 * against generated texts.
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

type Commit = readonly Statement[];

/**
 * Packs commits for the writer, `isolated` or grouped. Bytes are copied.
 * Only neighbours are grouped, so that commits are stored in the order in which they came.
 */
export function packBatch(
  numbers: SqlNumbers,
  commits: readonly Commit[],
  { isolated }: { readonly isolated: boolean },
): BatchMessage {
  const resetSql = numbers.begin();
  const packing: Packing = { numbers, tokens: [], blobs: [] };
  for (let at = 0; at < commits.length; ) {
    const end = isolated ? at + 1 : endOfGroup(commits, at);
    packGroup(packing, commits.slice(at, end));
    at = end;
  }
  return {
    kind: 'batch',
    resetSql,
    newSql: numbers.fresh(),
    isolated,
    commits: commits.length,
    tokens: packing.tokens,
    bytes: concatenate(packing.blobs),
  };
}

/** Index after the last of the commits from `begin` on that have its form. */
function endOfGroup(commits: readonly Commit[], begin: number): number {
  const first = commits[begin] as Commit;
  let end = begin + 1;
  while (end < commits.length && areAlike(first, commits[end] as Commit)) end++;
  return end;
}

/** Whether the commits differ only in params, and added-up statements only in amounts. */
function areAlike(one: Commit, other: Commit): boolean {
  return one.length === other.length && one.every((a, index) => isSameForm(a, other[index] as Statement));
}

function isSameForm(a: Statement, b: Statement): boolean {
  if (a.sql !== b.sql || a.expectChanges !== b.expectChanges || a.params.length !== b.params.length)
    return false;
  if (!isIncrement(a) || !isIncrement(b)) return isIncrement(a) === isIncrement(b);
  return a.params.every((param, i) => {
    const [isAmount, isAmountToo] = [a.amounts.includes(i), b.amounts.includes(i)];
    if (!isAmount || !isAmountToo) return isAmount === isAmountToo && param === b.params[i];
    return Number.isSafeInteger(param) && Number.isSafeInteger(b.params[i]);
  });
}

interface Packing {
  readonly numbers: SqlNumbers;
  readonly tokens: Token[];
  readonly blobs: Uint8Array[];
}

function packGroup(packing: Packing, group: readonly Commit[]): void {
  const first = group[0] as Commit;
  const isShared = (statement: Statement) => group.length > 1 && isIncrement(statement);
  const { tokens, numbers } = packing;
  tokens.push(group.length, first.length);
  for (const statement of first) {
    const { sql, expectChanges, params } = statement;
    tokens.push(numbers.numberOf(sql), expectChanges ?? -1, params.length, isShared(statement) ? 1 : 0);
  }
  for (const commit of group) {
    for (const statement of commit) if (!isShared(statement)) packParams(packing, statement.params);
  }
  for (const [index, statement] of first.entries()) {
    if (isShared(statement)) packParams(packing, summedParams(statement as Increment, group, index));
  }
}

/** The params of statement `index`, with the amounts of the whole group. */
function summedParams({ params, amounts }: Increment, group: readonly Commit[], index: number): SqlValue[] {
  const added = [...params] as SqlValue[];
  for (const i of amounts) {
    added[i] = group.reduce((sum, commit) => sum + BigInt(commit[index]?.params[i] as number), 0n);
  }
  return added;
}

function packParams({ tokens, blobs }: Packing, params: Statement['params']): void {
  for (const param of params) {
    if (param instanceof Uint8Array) {
      blobs.push(param);
      tokens.push(true, param.byteLength);
    } else if (typeof param === 'object' && param !== null) tokens.push(false, param.rowIdOf);
    else tokens.push(param);
  }
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

/** Row IDs of a commit's statements so far; undefined: it is run for the whole group later. */
export type RowIds = (number | undefined)[];

/** Reads a batch in the order in which packBatch wrote it. */
export class BatchCursor {
  readonly #tokens: readonly Token[];
  readonly #bytes: ArrayBuffer;
  #at = 0;
  #byteAt = 0;

  constructor(message: BatchMessage) {
    this.#tokens = message.tokens;
    this.#bytes = message.bytes;
  }

  number(): number {
    return this.#tokens[this.#at++] as number;
  }

  /** The next param; `rowIds`: of this commit's statements so far. */
  param(rowIds: Readonly<RowIds>): SqlValue {
    const token = this.#tokens[this.#at++] as Token;
    if (token === true) {
      const length = this.number();
      const bytes = Buffer.from(this.#bytes, this.#byteAt, length);
      this.#byteAt += length;
      return bytes;
    }
    if (token !== false) return token;
    const index = this.number();
    const rowId = rowIds[index];
    if (rowId === undefined) throw new RangeError(`rowIdOf ${index} names no statement that ran before`);
    return rowId;
  }

  /** Skips this many params. */
  skipParams(count: number): void {
    for (let i = 0; i < count; i++) {
      const token = this.#tokens[this.#at++];
      if (token === true) this.#byteAt += this.number();
      else if (token === false) this.#at += 1;
    }
  }
}
