/** Runs one command for the console's query page and presents its result as columns and rows. */
import { type Document, EJSON, Long, serialize, Timestamp } from 'bson';
import { CommandError, decodeCommand, decodeDocument } from '../../../../libs/mongo/index.ts';
import type { Query, ResultColumn, Table } from '../../../databases/engine.ts';
import { exactJson } from './extended-json.ts';

/** `{"name":"","type":null},` */
const COLUMN_BYTES = 25;
/** `null,` */
const NULL_BYTES = 5;
const LISTS = ['aggregate', 'listCollections', 'listIndexes'];
/** Commands that skip documents themselves. */
const SKIPS = new Set(['find', 'aggregate']);
const NOTHING = { $nor: [{}] };
const WRITES = new Set(['insert', 'update', 'delete', 'findAndModify', 'findandmodify']);

/**
 * The command of a query, which requests no more documents than are shown. `decode`: for its
 * executor's format of documents. Throws CommandError.
 */
export function commandOf(
  statement: Document,
  bounds: Pick<Query, 'maxRows' | 'skip'>,
  decode: (bytes: Uint8Array) => Document = decodeCommand,
): Document {
  try {
    return bounded(decode(serialize(EJSON.deserialize(statement, { relaxed: false }))), bounds);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(
      'FailedToParse',
      `the command is not valid Extended JSON: ${(error as Error).message}`,
    );
  }
}

type Bounds = Pick<Query, 'maxRows' | 'maxBytes' | 'skip' | 'isExact'>;

interface Found {
  readonly columns: readonly ResultColumn[];
  readonly rows: readonly (readonly unknown[])[];
  readonly affected: number | null;
  readonly truncated: boolean;
}

/** Throws CommandError if the reply is a failure. */
export function resultOf(command: Document, reply: Document, bounds: Bounds): Found {
  throwUnlessOk(reply);
  const [name = ''] = Object.keys(command);
  const skip = SKIPS.has(name) ? 0 : bounds.skip;
  return WRITES.has(name) ? written(reply) : read(reply, { ...bounds, skip: skip ?? 0 });
}

/** The command itself skips the documents before a page, if it can: there may be many. */
function bounded(command: Document, { maxRows, skip = 0 }: Pick<Query, 'maxRows' | 'skip'>): Document {
  const batchSize = maxRows + 1;
  if ('find' in command) return { ...command, ...(skip === 0 ? {} : foundBeyond(command, skip)), batchSize };
  if ('aggregate' in command && Array.isArray(command.pipeline)) {
    const pipeline = skip === 0 ? command.pipeline : [...command.pipeline, { $skip: skip }];
    return { ...command, pipeline, cursor: { batchSize } };
  }
  const hasCursor = LISTS.some((name) => name in command);
  return hasCursor ? { ...command, cursor: { batchSize: batchSize + skip } } : command;
}

function foundBeyond({ skip = 0, limit = 0 }: Document, more: number): Document {
  const skipped = { skip: Number(skip) + more };
  const left = Math.abs(Number(limit)) - more;
  if (Number(limit) === 0) return skipped;
  // A limit of 0 would be none.
  return left > 0 ? { ...skipped, limit: left } : { filter: NOTHING };
}

function throwUnlessOk(reply: Document): void {
  const error = reply.ok === 1 ? reply.writeErrors?.[0] : reply;
  if (error === undefined) return;
  throw new CommandError(Number(error.code), String(error.errmsg));
}

function written({ n, nModified, lastErrorObject }: Document) {
  const affected = Number(nModified ?? n ?? lastErrorObject?.n ?? 0);
  return { columns: [], rows: [], affected, truncated: false };
}

function read({ cursor, ...reply }: Document, { maxRows, maxBytes, skip = 0, isExact = false }: Bounds) {
  const { ok: _, ...one } = reply;
  const all: Document[] = cursor?.firstBatch ?? cursor?.nextBatch ?? [one];
  const documents = all.slice(skip);
  const columns = new Map<string, number>();
  const rows: unknown[][] = [];
  let bytes = 0;
  for (const found of documents.slice(0, maxRows)) {
    const document = found instanceof Uint8Array ? decodeDocument(found) : found;
    const entries = Object.entries(document);
    const added = entries.map(([name]) => name).filter((name) => !columns.has(name));
    // Each new column also makes all rows longer.
    bytes += added.reduce((sum, name) => sum + COLUMN_BYTES + Buffer.byteLength(name), 0);
    if (bytes + added.length * NULL_BYTES * rows.length > maxBytes) break;
    bytes += added.length * NULL_BYTES * rows.length;
    const row: unknown[] = [];
    for (const [name, value] of entries) {
      const at = columns.get(name) ?? columns.size;
      columns.set(name, at);
      row[at] = isExact ? exactJson(value) : shown(value);
    }
    bytes += Buffer.byteLength(JSON.stringify(row)) + 1;
    if (bytes > maxBytes) break;
    rows.push(row);
  }
  const truncated = rows.length < documents.length || !(cursor?.id?.isZero() ?? true);
  return {
    columns: [...columns.keys()].map((name) => ({ name, type: null })),
    rows: rows.map((row) => Array.from({ length: columns.size }, (_, at) => row[at] ?? null)),
    affected: null,
    truncated,
  };
}

/** Relaxed Extended JSON, except for integers beyond JavaScript's precision. */
function shown(value: unknown): unknown {
  if (value instanceof Long && !(value instanceof Timestamp)) {
    const number = value.toNumber();
    return Number.isSafeInteger(number) ? number : { $numberLong: value.toString() };
  }
  if (Array.isArray(value)) return value.map(shown);
  if (value?.constructor === Object) {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shown(inner)]));
  }
  return (EJSON.serialize({ value }, { relaxed: true }) as Document).value;
}

/** Built from the replies of `listIndexes` and `collStats`. */
export function describeCollection(name: string, indexes: readonly Document[], stats: Document): Table {
  const bytes = Number(stats.storageSize) + Number(stats.totalIndexSize ?? 0);
  return {
    name,
    schema: null,
    type: 'collection',
    columns: [],
    indexes: indexes.map((index) => ({
      name: String(index.name),
      columns: Object.keys(index.key ?? {}),
      unique: index.unique === true || index.name === '_id_',
    })),
    foreign_keys: [],
    estimated_rows: Number.isFinite(Number(stats.count)) ? Number(stats.count) : null,
    size_bytes: Number.isFinite(bytes) ? bytes : null,
  };
}

/** The number of documents of a view is unknown without reading it. */
export function describeView(name: string): Table {
  return {
    name,
    schema: null,
    type: 'view',
    columns: [],
    indexes: [],
    foreign_keys: [],
    estimated_rows: null,
    size_bytes: null,
  };
}
