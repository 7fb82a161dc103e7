/** Reads and writes Hrana messages: as JSON, or as protobuf (HRANA_3_SPEC of libsql). */
import type { SQLOutputValue } from 'node:sqlite';
import { HranaError } from './error.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

export interface Column {
  readonly name: string;
  readonly type: string | null;
}

export interface Counted {
  readonly affected: number;
  /** null unless the statement inserts or changes rows. */
  readonly lastRowid: bigint | null;
}

/** A statement that was not run. */
export interface Description {
  readonly params: readonly (string | null)[];
  readonly columns: readonly Column[];
  readonly explains: boolean;
  readonly writes: boolean;
}

/** Text or bytes of a message, or a part of one. */
export type Piece = string | Uint8Array;

/** The response to one request of a stream, without the envelope of HTTP or WebSocket. */
export interface Answer {
  /** `execute`, as the protocol names the request. */
  readonly type: string;
  /** The result of execute, batch and describe. */
  readonly result?: Piece;
  readonly isAutocommit?: boolean;
  /** The entries of fetch_cursor, written by entry(). */
  readonly entries?: readonly Piece[];
  readonly isDone?: boolean;
}

export type CursorEntry =
  | { readonly type: 'step_begin'; readonly step: number; readonly columns: readonly Column[] }
  | { readonly type: 'row'; readonly row: Piece }
  | { readonly type: 'step_end'; readonly count: Counted }
  | { readonly type: 'step_error'; readonly step: number; readonly error: unknown }
  | { readonly type: 'error'; readonly error: unknown };

/** Writes the responses of one call. Pieces passed to a method were written by the same object. */
export interface Output {
  /** Allows the next row to be as long as a whole response. */
  renew(): void;
  /** A row. Throws HranaError `RESPONSE_TOO_LARGE` if the response becomes too large. */
  row(values: readonly SQLOutputValue[]): Piece;
  /** StmtResult. */
  result(columns: readonly Column[], rows: readonly Piece[], count: Counted): Piece;
  /** BatchResult; null for steps without a result or an error. */
  batch(results: readonly (Piece | null)[], errors: readonly (Piece | null)[]): Piece;
  /** DescribeResult. */
  description(description: Description): Piece;
  error(error: unknown): Piece;
  /** CursorEntry. */
  entry(entry: CursorEntry): Piece;
  /** StreamResult of a request in a pipeline. */
  succeeded(answer: Answer): Piece;
  failed(error: unknown): Piece;
  /** PipelineRespBody. */
  pipeline(baton: string | null, results: readonly Piece[]): Piece;
  /** CursorRespBody. */
  cursor(baton: string | null): Piece;
  /** Consecutive messages in one body, for a cursor. */
  sequence(messages: readonly Piece[]): Piece;
  /** ServerMsg of a WebSocket. */
  response(requestId: number, answer: Answer): Piece;
  refusal(requestId: number, error: unknown): Piece;
}

export interface HranaFormat {
  readonly contentType: string;
  /** Each throws HranaError `PROTOCOL_ERROR`. The objects have the members of the JSON encoding. */
  readPipeline(bytes: Uint8Array): JsonObject;
  readCursor(bytes: Uint8Array): JsonObject;
  /** ClientMsg of a WebSocket. */
  readMessage(bytes: Uint8Array): JsonObject;
  /** `maxLength`: of the rows of a response, in characters or bytes. */
  output(maxLength: number): Output;
}

/** Remaining size of a response. */
export class Budget {
  readonly #most: number;
  #left: number;

  constructor(most: number) {
    this.#most = most;
    this.#left = most;
  }

  renew(): void {
    this.#left = this.#most;
  }

  /** Throws HranaError. Called before conversion, which could exhaust the memory. */
  assertFits(length: number): void {
    if (length <= this.#left) return;
    throw new HranaError(
      'RESPONSE_TOO_LARGE',
      'The result is too large for one response: fetch fewer rows (LIMIT), or use a cursor',
    );
  }

  take(length: number): void {
    this.assertFits(length);
    this.#left -= length;
  }
}

/** Length of a value before it is converted. */
export function lengthOf(value: SQLOutputValue): number {
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 1;
}

export function protocolError(message: string): HranaError {
  return new HranaError('PROTOCOL_ERROR', message);
}
