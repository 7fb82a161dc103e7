/**
 * Hrana as protobuf: https://github.com/tursodatabase/libsql/blob/main/docs/HRANA_3_SPEC.md, which
 * defines the field numbers. Reading returns the objects of the JSON encoding.
 */
import type { SQLOutputValue } from 'node:sqlite';
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { describeError } from './error.ts';
import {
  type Answer,
  Budget,
  type Column,
  type Counted,
  type CursorEntry,
  type Description,
  type HranaFormat,
  type JsonObject,
  lengthOf,
  type Output,
  type Piece,
  protocolError,
} from './format.ts';

export const PROTOBUF_FORMAT: HranaFormat = {
  contentType: 'application/x-protobuf',
  readPipeline: (bytes) => read(bytes, PIPELINE),
  readCursor: (bytes) => read(bytes, CURSOR),
  readMessage: (bytes) => read(bytes, CLIENT_MESSAGE),
  output: (maxLength) => new ProtobufOutput(maxLength),
};

type Members = Record<string, unknown>;
/** Reads one field into the message. */
interface Field {
  readonly wire: WireType;
  readonly read: (reader: BinaryReader, into: Members, depth: number) => void;
}
/** The fields of a message by number. */
interface Shape {
  readonly fields: Readonly<Record<number, Field>>;
  /** A list member, which is present even without a field. */
  readonly list?: string;
  /** Values sent as no field: zeros and empty texts, as in proto3 for fields that are not `optional`. */
  readonly unsent?: Readonly<Members>;
}

/** Conditions of a batch are the only messages that contain messages of their own type. */
const MAX_DEPTH = 200;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Throws HranaError `PROTOCOL_ERROR`. */
function read(bytes: Uint8Array, shape: Shape): JsonObject {
  try {
    return readShape(new BinaryReader(bytes), { shape, end: bytes.length, depth: 0 });
  } catch (error) {
    throw protocolError(`The body is not a valid protobuf message: ${(error as Error).message}`);
  }
}

function readShape(
  reader: BinaryReader,
  { shape, end, depth }: { readonly shape: Shape; readonly end: number; readonly depth: number },
): Members {
  if (depth > MAX_DEPTH) throw new Error(`messages are nested deeper than ${MAX_DEPTH} levels`);
  const { fields, list, unsent } = shape;
  const message: Members = list === undefined ? { ...unsent } : { [list]: [] };
  while (reader.pos < end) {
    const [number, wire] = reader.tag();
    const field = fields[number];
    if (field === undefined) reader.skip(wire, number);
    else if (field.wire === wire) field.read(reader, message, depth);
    else throw new Error(`field ${number} has another type`);
  }
  if (reader.pos > end) throw new Error('a message is longer than its announced length');
  return message;
}

function nested(reader: BinaryReader, shape: Shape, depth: number): Members {
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > reader.len) throw new Error('it is cut off');
  return readShape(reader, { shape, end, depth: depth + 1 });
}

const text = (name: string): Field => ({
  wire: WireType.LengthDelimited,
  read: (reader, into) => {
    into[name] = utf8.decode(reader.bytes());
  },
});
const signed = (name: string): Field => ({
  wire: WireType.Varint,
  read: (reader, into) => {
    into[name] = reader.int32();
  },
});
const unsigned = (name: string): Field => ({
  wire: WireType.Varint,
  read: (reader, into) => {
    into[name] = reader.uint32();
  },
});
const flag = (name: string): Field => ({
  wire: WireType.Varint,
  read: (reader, into) => {
    into[name] = reader.bool();
  },
});
const one = (name: string, shape: () => Shape): Field => ({
  wire: WireType.LengthDelimited,
  read: (reader, into, depth) => {
    into[name] = nested(reader, shape(), depth);
  },
});
const many = (name: string, shape: () => Shape): Field => ({
  wire: WireType.LengthDelimited,
  read: (reader, into, depth) => {
    const list = (into[name] as unknown[] | undefined) ?? [];
    list.push(nested(reader, shape(), depth));
    into[name] = list;
  },
});
/** A message whose type depends on the field. */
const kind = (name: string, type: string, shape: () => Shape): Field => ({
  wire: WireType.LengthDelimited,
  read: (reader, into, depth) => {
    into[name] = { ...nested(reader, shape(), depth), type };
  },
});
/** Like message(), with members in the surrounding message. */
const inPlace = (type: string, shape: () => Shape, member?: string): Field => ({
  wire: WireType.LengthDelimited,
  read: (reader, into, depth) => {
    const message = nested(reader, shape(), depth);
    Object.assign(into, { type }, member === undefined ? message : { [member]: message });
  },
});
const value = (type: string, wire: WireType, readValue: (reader: BinaryReader) => unknown): Field => ({
  wire,
  read: (reader, into) => {
    Object.assign(into, { type, value: readValue(reader) });
  },
});
const shape = (fields: Readonly<Record<number, Field>>, list?: string): Shape =>
  list === undefined ? { fields } : { fields, list };

const { Varint, Bit64, LengthDelimited } = WireType;
const EMPTY = shape({});
const VALUE: Shape = shape({
  1: inPlace('null', () => EMPTY),
  2: value('integer', Varint, (reader) => BigInt(reader.sint64())),
  3: value('float', Bit64, (reader) => reader.double()),
  4: value('text', LengthDelimited, (reader) => utf8.decode(reader.bytes())),
  5: value('blob', LengthDelimited, (reader) => reader.bytes()),
});
const NAMED: Shape = shape({ 1: text('name'), 2: one('value', () => VALUE) });
const STMT: Shape = shape({
  1: text('sql'),
  2: signed('sql_id'),
  3: many('args', () => VALUE),
  4: many('named_args', () => NAMED),
  5: flag('want_rows'),
});
const CONDITION: Shape = shape({
  1: { wire: Varint, read: (reader, into) => Object.assign(into, { type: 'ok', step: reader.uint32() }) },
  2: { wire: Varint, read: (reader, into) => Object.assign(into, { type: 'error', step: reader.uint32() }) },
  3: inPlace('not', () => CONDITION, 'cond'),
  4: inPlace('and', () => CONDITIONS),
  5: inPlace('or', () => CONDITIONS),
  6: inPlace('is_autocommit', () => EMPTY),
});
const CONDITIONS: Shape = shape({ 1: many('conds', () => CONDITION) }, 'conds');
const STEP: Shape = shape({ 1: one('condition', () => CONDITION), 2: one('stmt', () => STMT) });
const BATCH: Shape = shape({ 1: many('steps', () => STEP) }, 'steps');

/** The fields of a request, after those that only a WebSocket's has. */
const withStmt = (at: number) => ({ [at]: one('stmt', () => STMT) });
const withBatch = (at: number) => ({ [at]: one('batch', () => BATCH) });
const withSql = (at: number) => ({ [at]: text('sql'), [at + 1]: signed('sql_id') });
const fixed = (fields: Readonly<Record<number, Field>>, unsent: Readonly<Members> = {}) => {
  const made = { fields, unsent };
  return () => made;
};
const STORED = fixed({ 1: signed('sql_id'), 2: text('sql') }, { sql_id: 0, sql: '' });

const REQUEST: Shape = shape({
  1: inPlace('close', () => EMPTY),
  2: inPlace('execute', fixed(withStmt(1))),
  3: inPlace('batch', fixed(withBatch(1))),
  4: inPlace('sequence', fixed(withSql(1))),
  5: inPlace('describe', fixed(withSql(1))),
  6: inPlace('store_sql', STORED),
  7: inPlace('close_sql', STORED),
  8: inPlace('get_autocommit', () => EMPTY),
});
const PIPELINE: Shape = shape({ 1: text('baton'), 2: many('requests', () => REQUEST) }, 'requests');
const CURSOR: Shape = shape({ 1: text('baton'), 2: one('batch', () => BATCH) });

const ofStream = (fields: Readonly<Record<number, Field>> = {}, unsent: Readonly<Members> = {}) =>
  fixed({ 1: signed('stream_id'), ...fields }, { stream_id: 0, ...unsent });
const ofCursor = (fields: Readonly<Record<number, Field>> = {}) =>
  fixed({ 1: signed('cursor_id'), ...fields }, { cursor_id: 0 });
/** Responses and requests have the same type numbers. */
const SOCKET_REQUESTS: Readonly<Record<number, readonly [type: string, shape: () => Shape]>> = {
  2: ['open_stream', ofStream()],
  3: ['close_stream', ofStream()],
  4: ['execute', ofStream(withStmt(2))],
  5: ['batch', ofStream(withBatch(2))],
  6: ['open_cursor', ofStream({ 2: signed('cursor_id'), ...withBatch(3) }, { cursor_id: 0 })],
  7: ['close_cursor', ofCursor()],
  8: ['fetch_cursor', ofCursor({ 2: unsigned('max_count') })],
  9: ['sequence', ofStream(withSql(2))],
  10: ['describe', ofStream(withSql(2))],
  11: ['store_sql', STORED],
  12: ['close_sql', STORED],
  13: ['get_autocommit', ofStream()],
};
const SOCKET_REQUEST_FIELDS: Readonly<Record<number, Field>> = {
  1: signed('request_id'),
  ...Object.fromEntries(
    Object.entries(SOCKET_REQUESTS).map(([number, [type, of]]) => [number, kind('request', type, of)]),
  ),
};
const CLIENT_MESSAGE: Shape = shape({
  1: inPlace('hello', fixed({ 1: text('jwt') })),
  2: inPlace('request', fixed(SOCKET_REQUEST_FIELDS, { request_id: 0 })),
});

const numbersOf = (types: readonly string[], first: number) =>
  new Map(types.map((type, index) => [type, index + first]));
const STREAM_ANSWERS = numbersOf(
  ['close', 'execute', 'batch', 'sequence', 'describe', 'store_sql', 'close_sql', 'get_autocommit'],
  1,
);
const SOCKET_ANSWERS = new Map(
  Object.entries(SOCKET_REQUESTS).map(([number, [type]]) => [type, Number(number)]),
);

class ProtobufOutput implements Output {
  readonly #budget: Budget;

  constructor(maxLength: number) {
    this.#budget = new Budget(maxLength);
  }

  renew(): void {
    this.#budget.renew();
  }

  row(values: readonly SQLOutputValue[]): Uint8Array {
    const writer = new BinaryWriter();
    for (const each of values) {
      this.#budget.assertFits(lengthOf(each));
      writer.tag(1, LengthDelimited).fork();
      writeValue(writer, each);
      writer.join();
    }
    const row = writer.finish();
    this.#budget.take(row.length);
    return row;
  }

  result(columns: readonly Column[], rows: readonly Piece[], count: Counted): Uint8Array {
    const writer = new BinaryWriter();
    writeColumns(writer, 1, columns);
    for (const row of rows) writePart(writer, 2, row);
    writer.tag(3, Varint).uint64(count.affected);
    if (count.lastRowid !== null) writer.tag(4, Varint).sint64(count.lastRowid);
    return writer.finish();
  }

  batch(results: readonly (Piece | null)[], errors: readonly (Piece | null)[]): Uint8Array {
    const writer = new BinaryWriter();
    for (const [field, pieces] of [[1, results] as const, [2, errors] as const]) {
      for (const [step, piece] of pieces.entries()) {
        if (piece === null) continue;
        writer.tag(field, LengthDelimited).fork().tag(1, Varint).uint32(step);
        writePart(writer, 2, piece).join();
      }
    }
    return writer.finish();
  }

  description({ params, columns, explains, writes }: Description): Uint8Array {
    const writer = new BinaryWriter();
    for (const name of params) {
      writer.tag(1, LengthDelimited).fork();
      if (name !== null) writer.tag(1, LengthDelimited).string(name);
      writer.join();
    }
    writeColumns(writer, 2, columns);
    return writer.tag(3, Varint).bool(explains).tag(4, Varint).bool(!writes).finish();
  }

  error(error: unknown): Uint8Array {
    const { message, code } = describeError(error);
    const writer = new BinaryWriter().tag(1, LengthDelimited).string(message);
    return writer.tag(2, LengthDelimited).string(code).finish();
  }

  entry(entry: CursorEntry): Uint8Array {
    const writer = new BinaryWriter();
    switch (entry.type) {
      case 'step_begin':
        writer.tag(1, LengthDelimited).fork().tag(1, Varint).uint32(entry.step);
        writeColumns(writer, 2, entry.columns);
        return writer.join().finish();
      case 'step_end':
        writer.tag(2, LengthDelimited).fork().tag(1, Varint).uint64(entry.count.affected);
        if (entry.count.lastRowid !== null) writer.tag(2, Varint).sint64(entry.count.lastRowid);
        return writer.join().finish();
      case 'step_error':
        writer.tag(3, LengthDelimited).fork().tag(1, Varint).uint32(entry.step);
        return writePart(writer, 2, this.error(entry.error)).join().finish();
      case 'row':
        return writePart(writer, 4, entry.row).finish();
      case 'error':
        return writePart(writer, 5, this.error(entry.error)).finish();
    }
  }

  succeeded(answer: Answer): Uint8Array {
    const writer = new BinaryWriter().tag(1, LengthDelimited).fork();
    return writeAnswer(writer, STREAM_ANSWERS, answer).join().finish();
  }

  failed(error: unknown): Uint8Array {
    return writePart(new BinaryWriter(), 2, this.error(error)).finish();
  }

  pipeline(baton: string | null, results: readonly Piece[]): Uint8Array {
    const writer = new BinaryWriter();
    if (baton !== null) writer.tag(1, LengthDelimited).string(baton);
    for (const result of results) writePart(writer, 3, result);
    return writer.finish();
  }

  cursor(baton: string | null): Uint8Array {
    const writer = new BinaryWriter();
    if (baton !== null) writer.tag(1, LengthDelimited).string(baton);
    return writer.finish();
  }

  /** Each with its length before it. */
  sequence(messages: readonly Piece[]): Uint8Array {
    const writer = new BinaryWriter();
    for (const message of messages) writer.bytes(message as Uint8Array);
    return writer.finish();
  }

  response(requestId: number, answer: Answer): Uint8Array {
    const writer = new BinaryWriter().tag(3, LengthDelimited).fork().tag(1, Varint).int32(requestId);
    return writeAnswer(writer, SOCKET_ANSWERS, answer).join().finish();
  }

  refusal(requestId: number, error: unknown): Uint8Array {
    const writer = new BinaryWriter().tag(4, LengthDelimited).fork().tag(1, Varint).int32(requestId);
    return writePart(writer, 2, this.error(error)).join().finish();
  }
}

function writePart(writer: BinaryWriter, field: number, piece: Piece): BinaryWriter {
  return writer.tag(field, LengthDelimited).bytes(piece as Uint8Array);
}

function writeAnswer(
  writer: BinaryWriter,
  numbers: ReadonlyMap<string, number>,
  { type, result, isAutocommit, entries, isDone }: Answer,
): BinaryWriter {
  const number = numbers.get(type);
  if (number === undefined) throw new Error(`an answer of the type ${type} has no field`);
  writer.tag(number, LengthDelimited).fork();
  if (result !== undefined) writePart(writer, 1, result);
  if (isAutocommit !== undefined) writer.tag(1, Varint).bool(isAutocommit);
  for (const entry of entries ?? []) writePart(writer, 1, entry);
  if (isDone !== undefined) writer.tag(2, Varint).bool(isDone);
  return writer.join();
}

function writeColumns(writer: BinaryWriter, field: number, columns: readonly Column[]): void {
  for (const { name, type } of columns) {
    writer.tag(field, LengthDelimited).fork().tag(1, LengthDelimited).string(name);
    if (type !== null) writer.tag(2, LengthDelimited).string(type);
    writer.join();
  }
}

function writeValue(writer: BinaryWriter, value: SQLOutputValue): void {
  if (value === null) writer.tag(1, LengthDelimited).fork().join();
  else if (typeof value === 'bigint') writer.tag(2, Varint).sint64(value);
  else if (typeof value === 'number') writer.tag(3, Bit64).double(value);
  else if (typeof value === 'string') writer.tag(4, LengthDelimited).string(value);
  else writer.tag(5, LengthDelimited).bytes(value);
}
