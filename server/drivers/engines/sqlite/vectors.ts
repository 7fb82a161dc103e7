/**
 * Functions of libSQL for vectors: exact distances, which read all rows that a statement asks for. An index
 * of vectors (`libsql_vector_idx`, `vector_top_k`) needs a virtual table, which Node's SQLite cannot define.
 */
import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite';

/** The last byte of a blob of odd length, as libSQL stores it; 32 bits have none. */
const DOUBLES = 2;
const MOST_DIMENSIONS = 65_536;
const INSTEAD = "ORDER BY vector_distance_cos(COLUMN, vector32('[…]')) LIMIT 10 reads all rows";
const NO_INDEX =
  /^no such (?:function: (?:libsql_vector_idx|vector_top_k)|table(?:-valued function)?: vector_top_k)$/;

interface Vector {
  readonly isDouble: boolean;
  readonly values: Float32Array | Float64Array;
}

/** Defines the functions. None can be part of a schema, so other programs can open the file. */
export function defineVectorFunctions(database: DatabaseSync): void {
  const define = (name: string, run: (...given: SQLOutputValue[]) => SQLInputValue) =>
    database.function(name, { deterministic: true }, run);
  const read = new VectorReader();
  for (const name of ['vector', 'vector32']) define(name, (given) => bytesOf(read.of(given), false));
  define('vector64', (given) => bytesOf(read.of(given), true));
  define('vector_extract', (given) => textOf(read.of(given)));
  define('vector_distance_cos', (a, b) => distance(read.of(a), read.of(b), cosine));
  define('vector_distance_l2', (a, b) => distance(read.of(a), read.of(b), euclidean));
}

/** Adds advice to an error about vector indexes; other errors stay unchanged. */
export function withVectorHint(error: unknown): unknown {
  if (error instanceof Error && NO_INDEX.test(error.message))
    error.message += ` (vectors have no index here: ${INSTEAD})`;
  return error;
}

/** Reads a vector; a vector as text is often the same for all rows of a statement. */
class VectorReader {
  readonly #texts = new Map<string, Vector>();

  of(value: SQLOutputValue | undefined): Vector | null {
    if (value === null || value === undefined) return null;
    if (value instanceof Uint8Array) return ofBytes(value);
    if (typeof value !== 'string') throw failure('a vector is text such as [1,2,3], or a blob');
    const known = this.#texts.get(value);
    if (known !== undefined) return known;
    const vector = ofText(value);
    if (this.#texts.size > 1) this.#texts.clear();
    this.#texts.set(value, vector);
    return vector;
  }
}

function ofText(text: string): Vector {
  let values: unknown;
  try {
    values = JSON.parse(text);
  } catch {
    throw failure('invalid vector: expected numbers in brackets, such as [1,2,3]');
  }
  if (!Array.isArray(values) || values.some((value) => typeof value !== 'number'))
    throw failure('invalid vector: expected numbers in brackets, such as [1,2,3]');
  if (values.length > MOST_DIMENSIONS) throw failure(`a vector has at most ${MOST_DIMENSIONS} dimensions`);
  return { isDouble: false, values: Float64Array.from(values as number[]) };
}

function ofBytes(bytes: Uint8Array): Vector {
  const isDouble = bytes.length % 2 === 1;
  if (isDouble ? bytes.at(-1) !== DOUBLES || bytes.length % 8 !== 1 : bytes.length % 4 !== 0)
    throw failure('the blob is not a vector of 32 or 64 bits');
  const buffer = bytes.slice().buffer;
  const values = isDouble
    ? new Float64Array(buffer, 0, (bytes.length - 1) / 8)
    : new Float32Array(buffer, 0, bytes.length / 4);
  return { isDouble, values };
}

function bytesOf(vector: Vector | null, isDouble: boolean): Uint8Array | null {
  if (vector === null) return null;
  if (!isDouble) return new Uint8Array(Float32Array.from(vector.values).buffer);
  const bytes = new Uint8Array(vector.values.length * 8 + 1);
  bytes.set(new Uint8Array(Float64Array.from(vector.values).buffer));
  bytes[bytes.length - 1] = DOUBLES;
  return bytes;
}

function textOf(vector: Vector | null): string | null {
  if (vector === null) return null;
  const { values } = vector;
  const all = values instanceof Float32Array ? Array.from(values, shortest) : Array.from(values);
  return `[${all.join(',')}]`;
}

/** The shortest number that is the same in 32 bits. */
function shortest(value: number): number {
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}

function distance(
  a: Vector | null,
  b: Vector | null,
  measure: (a: Vector['values'], b: Vector['values']) => number,
): number | null {
  if (a === null || b === null) return null;
  if (a.values.length !== b.values.length)
    throw failure(`vectors must have the same length: ${a.values.length} != ${b.values.length}`);
  const result = measure(a.values, b.values);
  return Number.isNaN(result) ? null : result;
}

function cosine(a: Vector['values'], b: Vector['values']): number {
  let [dot, ofA, ofB] = [0, 0, 0];
  for (let at = 0; at < a.length; at++) {
    const [x, y] = [a[at] as number, b[at] as number];
    dot += x * y;
    ofA += x * x;
    ofB += y * y;
  }
  return 1 - dot / Math.sqrt(ofA * ofB);
}

function euclidean(a: Vector['values'], b: Vector['values']): number {
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum += ((a[at] as number) - (b[at] as number)) ** 2;
  return Math.sqrt(sum);
}

/** An error in SQLite's form. */
function failure(message: string): Error {
  return Object.assign(new Error(message), {
    code: 'ERR_SQLITE_ERROR',
    errcode: 1,
    errstr: 'SQL logic error',
  });
}

const INDEX =
  /^\s*CREATE\s+INDEX\s+(?:IF\s+NOT\s+EXISTS\s+)?(["`[]?)([^"`\]\s]+)["`\]]?\s+ON\s[\s\S]*\blibsql_vector_idx\s*\(/i;
const META = 'libsql_vector_meta_shadow';

/** The name of the index of vectors that the statement creates; undefined: it is another statement. */
export function vectorIndexOf(sql: string): string | undefined {
  return INDEX.exec(sql)?.[2];
}

/** Removes the parts of indexes of vectors, whose statements were left out. */
export function dropVectorParts(database: DatabaseSync, indexes: readonly string[]): void {
  const tables = [META, ...indexes.map((name) => `${name}_shadow`)];
  for (const table of tables) database.exec(`DROP TABLE IF EXISTS "${table.replaceAll('"', '""')}"`);
}

/** For `notes` of a load. */
export const NO_VECTOR_INDEX = `vectors have no index here: ${INSTEAD}`;
