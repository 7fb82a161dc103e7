/**
 * Documents between bytes and JavaScript, without losing a type.
 *
 * A `number` is an Int32 if it is whole and fits, else a Double. Only values that would be lost that way are
 * objects: a whole Double (`Double`), `Long` and `Decimal128`. So most numbers cost nothing, and
 * `encodeDocument(decodeDocument(bytes))` has the types of `bytes`.
 */
import { BSONType, DBRef, type Document, Double, deserialize, Int32, serialize } from 'bson';
import { CommandError } from '../command-error.ts';
import { hasWholeName, inOrder } from './field-order.ts';
import { keepStoredOrder } from './stored-order.ts';

/** Document size limit of a real server, bytes. */
export const MAX_DOCUMENT_BYTES = 16 * 2 ** 20;
/** Nesting limit of a real server. */
const MAX_DEPTH = 100;
/** Fields whose documents stay encoded, because they are stored unchanged. */
const RAW_FIELDS = { documents: true };
const EXACT = { promoteValues: false, bsonRegExp: true } as const;

/** A document as bytes, parsed on demand. */
export type RawDocument = Uint8Array;

/** One document sequence of an OP_MSG. */
export interface DocumentSequence {
  /** The command field that it belongs to: `documents`, `updates`, … */
  readonly identifier: string;
  readonly documents: readonly RawDocument[];
}

/**
 * The command of an OP_MSG: its body with the sequences merged in as arrays. Documents to insert
 * stay bytes. Throws CommandError for invalid BSON and for too deep nesting.
 */
export function decodeCommand(body: RawDocument, sequences: readonly DocumentSequence[] = []): Document {
  const command = decodeDocument(body, RAW_FIELDS);
  for (const { identifier, documents } of sequences) {
    if (identifier in command) throw new CommandError(40413, `duplicate field '${identifier}' in an OP_MSG`);
    command[identifier] =
      identifier in RAW_FIELDS ? documents : documents.map((bytes) => decodeDocument(bytes));
  }
  return command;
}

/** Throws CommandError. */
export function decodeDocument(bytes: RawDocument, fieldsAsRaw?: Document): Document {
  try {
    needsOrder = false;
    const whole = deserialize(bytes, fieldsAsRaw ? { ...EXACT, fieldsAsRaw } : EXACT);
    const document = normalize(whole, 1) as Document;
    if (needsOrder) keepStoredOrder(document, bytes);
    return document;
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(22, `invalid BSON: ${(error as Error).message}`);
  }
}

/** Throws CommandError. */
export function encodeDocument(document: Document): Uint8Array {
  const bytes = serialize(inOrder(document) as Document, { ignoreUndefined: true });
  if (bytes.length > MAX_DOCUMENT_BYTES) throw tooLarge(bytes.length);
  return bytes;
}

/** Error for a document that is too large. */
export function tooLarge(bytes: number): CommandError {
  return new CommandError(
    'BSONObjectTooLarge',
    `BSONObj size: ${bytes} is invalid. Size must be between 0 and ${MAX_DOCUMENT_BYTES}`,
  );
}

/** A document being decoded has names that JavaScript puts first. */
let needsOrder = false;

/** Converts types of `bson` to those of this engine; changes the value in place. */
function normalize(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_DEPTH)
    throw new CommandError('Overflow', `Document exceeds maximum nesting depth of ${MAX_DEPTH}`);
  if (value instanceof Int32) return value.value;
  if (value instanceof Double) return normalizeDouble(value);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = normalize(value[i], depth + 1);
    return value;
  }
  // A server treats a subdocument with `$ref` and `$id` like any other.
  if (value instanceof DBRef) return normalize(dereference(value), depth);
  if (value.constructor !== Object) return value;
  const document = value as Document;
  needsOrder ||= hasWholeName(document);
  for (const key of Object.keys(document)) {
    const inner = document[key];
    if (typeof inner === 'object' && inner !== null) document[key] = normalize(inner, depth + 1);
  }
  return document;
}

function normalizeDouble(value: Double): unknown {
  const { value: number } = value;
  return Number.isInteger(number) && !Object.is(number, -0) && Math.abs(number) <= 2 ** 31 ? value : number;
}

function dereference({ collection, oid, db, fields }: DBRef): Document {
  return { $ref: collection, $id: oid, ...(db === undefined ? {} : { $db: db }), ...fields };
}

/**
 * The bytes of a reply. Batches of cursors may hold documents as bytes, which are copied as they are.
 * Never larger than a real server's: batches end at 16 MiB.
 */
export function encodeReply(reply: Document): Uint8Array {
  const { cursor } = reply;
  const name = cursor?.firstBatch ? 'firstBatch' : 'nextBatch';
  const batch: unknown = cursor?.[name];
  if (!Array.isArray(batch) || !(batch[0] instanceof Uint8Array))
    return serialize(inOrder(reply) as Document, { ignoreUndefined: true });
  const rest = Object.fromEntries(Object.entries(cursor).filter(([key]) => key !== name));
  const inner = withField(serialize(rest), BSONType.array, { name, value: arrayOf(batch) });
  const outer = Object.fromEntries(Object.entries(reply).filter(([key]) => key !== 'cursor'));
  return withField(serialize(outer), BSONType.object, { name: 'cursor', value: inner });
}

/** A document with an additional first field. */
function withField(
  document: Uint8Array,
  type: number,
  { name, value }: { name: string; value: Uint8Array },
): Uint8Array {
  const head = Buffer.from(`....${String.fromCharCode(type)}${name}\0`, 'latin1');
  const whole = Buffer.concat([head, value, document.subarray(4)]);
  whole.writeInt32LE(whole.length);
  return whole;
}

function arrayOf(documents: readonly Uint8Array[]): Uint8Array {
  const pieces: Uint8Array[] = [Buffer.alloc(4)];
  documents.forEach((bytes, index) => {
    pieces.push(Buffer.from(`${String.fromCharCode(BSONType.object)}${index}\0`, 'latin1'), bytes);
  });
  const whole = Buffer.concat([...pieces, Buffer.alloc(1)]);
  whole.writeInt32LE(whole.length);
  return whole;
}
