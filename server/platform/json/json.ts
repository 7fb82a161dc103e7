/**
 * Parses untrusted JSON with limits: valid UTF-8, at most 64 levels, no key that could reach a prototype.
 * JSON that was written elsewhere is passed on.
 */
import { detachBuffer } from '../buffers.ts';
import { AppError } from '../errors.ts';
import { jsonFault } from './json-fault.ts';

/** Maximum body size, unless the route declares more. Parsing blocks all other callers. */
export const JSON_MAX_BYTES = 16 * 1024;
const JSON_MAX_DEPTH = 64;
const TOO_DEEP = `is nested deeper than ${JSON_MAX_DEPTH} levels`;
/** For larger bodies. Two MiB may be text; as many small values they would block all requests for 0.2 s. */
const JSON_MAX_VALUES = 20_000;

/** Assigning this member would set a prototype. */
const FORBIDDEN_KEY = '__proto__';
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Throws AppError `invalid_json`, `payload_too_large`. An empty body is undefined. */
export function parseJson(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined;
  if (bytes.length > JSON_MAX_BYTES) assertFewValues(bytes);
  try {
    return readJson(utf8.decode(bytes));
  } catch (cause) {
    const problem = cause instanceof JsonProblem ? cause.message : 'is not valid UTF-8';
    throw new AppError('invalid_json', `The body ${problem}`, { cause });
  }
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [ARRAY, OBJECT, ARRAY_END, OBJECT_END] = [0x5b, 0x7b, 0x5d, 0x7d];

/** Counts commas, arrays and objects outside of texts, whether it is JSON or not. */
function assertFewValues(bytes: Uint8Array): void {
  let values = 0;
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfText(bytes, at);
      if (at < 0) return;
    } else if (byte === COMMA) values++;
    else if (byte === ARRAY || byte === OBJECT) {
      values++;
      depth++;
    } else if (byte === ARRAY_END || byte === OBJECT_END) depth--;
    if (depth > JSON_MAX_DEPTH) throw new AppError('invalid_json', `The body ${TOO_DEEP}`);
    if (values > JSON_MAX_VALUES)
      throw new AppError('payload_too_large', `The body has more than ${JSON_MAX_VALUES} values`, {
        hint: 'Send the data in several calls; for large amounts of rows, use a driver of the database',
      });
  }
}

/** The quote that ends the text from `begin` on; -1: there is none. */
function endOfText(bytes: Uint8Array, begin: number): number {
  let end = begin;
  for (;;) {
    end = bytes.indexOf(QUOTE, end + 1);
    let before = end - 1;
    while (before > begin && bytes[before] === BACKSLASH) before--;
    // An even number of backslashes escape each other.
    if (end < 0 || (end - 1 - before) % 2 === 0) return end;
  }
}

/** Why a text could not be parsed; the message starts with a verb. */
export class JsonProblem extends Error {}

/** Throws JsonProblem. */
export function readJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new JsonProblem(`is not valid JSON at ${jsonFault(text)}`);
  }
  inspect(value, 1);
  return value;
}

function inspect(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth > JSON_MAX_DEPTH) throw new JsonProblem(TOO_DEEP);
  if (Array.isArray(value)) {
    for (const item of value) inspect(item, depth + 1);
    return;
  }
  for (const key of Object.keys(value)) {
    if (key === FORBIDDEN_KEY) throw new JsonProblem(`has the forbidden member "${key}"`);
    inspect((value as Record<string, unknown>)[key], depth + 1);
  }
}

/**
 * A value as JSON text from another program. Parsing and writing 4 MiB again would block the event
 * loop for 10 to 15 ms.
 */
export class JsonText<Value = unknown> {
  /** UTF-8. */
  readonly pieces: readonly Uint8Array[];
  /** Freed by free(). */
  readonly memory: readonly Uint8Array[];

  /** `memory`: contains the pieces, and is not used elsewhere. */
  constructor(pieces: readonly Uint8Array[], memory = pieces) {
    this.pieces = pieces;
    this.memory = memory;
  }

  static of<Value>(value: Value): JsonText<Value> {
    return new JsonText<Value>([Buffer.from(JSON.stringify(value))]);
  }

  /** Bytes. */
  get length(): number {
    return this.pieces.reduce((sum, piece) => sum + piece.length, 0);
  }

  /** Call it when the text was sent: frees its memory. */
  free(): void {
    for (const bytes of this.memory) detachBuffer(bytes);
  }

  toString(): string {
    return Buffer.concat(this.pieces).toString();
  }

  /** Parses it: for small values, or to insert it into another value. */
  toJSON(): Value {
    return JSON.parse(this.toString());
  }
}
