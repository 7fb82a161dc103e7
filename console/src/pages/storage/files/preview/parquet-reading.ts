/** The columns and first rows of a Parquet file, read by ranges; a hostile file ends in a refusal. */
import { decompress } from 'fzstd';
import {
  type FileMetaData,
  parquetMetadata,
  parquetReadObjects,
  parquetSchema,
  snappyUncompress,
} from 'hyparquet';
// The library as a whole compiles WebAssembly, which the policy of the page forbids: these modules do not.
// @ts-expect-error: without types of its own
import { gunzip } from 'hyparquet-compressors/src/gzip.js';
// @ts-expect-error: without types of its own
import { decompressLz4, decompressLz4Raw } from 'hyparquet-compressors/src/lz4.js';

export interface ParquetTable {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  /** The first rows as text, for the first `shown` columns. */
  readonly rows: readonly (readonly string[])[];
  readonly shown: number;
  /** Columns and rows in the whole file. */
  readonly columnCount: number;
  readonly rowCount: number;
}

export type ParquetReason =
  | 'notParquet'
  | 'encrypted'
  | 'damaged'
  | 'metadataTooLarge'
  | 'rowsTooLarge'
  | 'unknownCodec'
  | 'notLoaded'
  | 'tooLong';

export class ParquetRefusal extends Error {
  readonly reason: ParquetReason;

  constructor(reason: ParquetReason) {
    super(reason);
    this.reason = reason;
  }
}

export interface ParquetFile {
  readonly size: number;
  /** Bytes from `start` to `end`, exclusive. */
  readonly read: (start: number, end: number) => Promise<ArrayBuffer>;
}

const MIB = 2 ** 20;
const MAGIC_BYTES = 4;
/** The length of the metadata, and the magic bytes. */
const END_BYTES = 8;
const METADATA_MAX_BYTES = 16 * MIB;
/** Maximum bytes of the columns that are read, and of their decompressed pages. */
const READ_MAX_BYTES = 32 * MIB;
const UNPACKED_MAX_BYTES = 128 * MIB;
const MOST_ROWS = 200;
const MOST_COLUMNS = 100;
/** Columns that are named; those of a machine's table may be many thousands. */
const MOST_NAMED = 1000;
const MOST_LETTERS = 500;

/** Throws ParquetRefusal, and the errors of `read`. */
export async function readParquet(file: ParquetFile): Promise<ParquetTable> {
  const metadata = await metadataOf(file);
  const { columns, columnCount } = columnsOf(metadata);
  const rowCount = Number(metadata.num_rows);
  const names = columns.slice(0, MOST_COLUMNS).map(({ name }) => name);
  const { group, shown } = shownOf(metadata, names);
  const named = names.slice(0, shown);
  const rows = group === undefined ? [] : await rowsOf(file, { metadata, columns: named, group });
  return { columns, columnCount, rowCount, rows, shown: rows.length === 0 ? columns.length : shown };
}

async function metadataOf({ size, read }: ParquetFile): Promise<FileMetaData> {
  if (size < MAGIC_BYTES + END_BYTES) throw new ParquetRefusal('notParquet');
  const end = new DataView(await read(size - END_BYTES, size));
  const magic = String.fromCharCode(...new Uint8Array(end.buffer, MAGIC_BYTES));
  if (magic === 'PARE') throw new ParquetRefusal('encrypted');
  if (magic !== 'PAR1') throw new ParquetRefusal('notParquet');
  const length = end.getUint32(0, true);
  if (length > size - END_BYTES - MAGIC_BYTES) throw new ParquetRefusal('damaged');
  if (length > METADATA_MAX_BYTES) throw new ParquetRefusal('metadataTooLarge');
  const bytes = await read(size - END_BYTES - length, size);
  return undamaged(() => parquetMetadata(bytes, { geoparquet: false }));
}

/** A parser throws many errors at bytes that it does not expect. */
function undamaged<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof ParquetRefusal ? error : new ParquetRefusal('damaged');
  }
}

function columnsOf(metadata: FileMetaData): Pick<ParquetTable, 'columns' | 'columnCount'> {
  const { children } = undamaged(() => parquetSchema(metadata));
  const columns = children.slice(0, MOST_NAMED).map(({ element, children: below }) => {
    const { name, type, logical_type, converted_type } = element;
    const kind = logical_type?.type ?? converted_type ?? (below.length > 0 ? 'STRUCT' : type);
    const plain = String(kind ?? '').toLowerCase();
    const word = plain === 'utf8' ? 'string' : plain.replace(/^timestamp_.*/, 'timestamp');
    return { name: cut(String(name)), type: element.repetition_type === 'REPEATED' ? `${word}[]` : word };
  });
  return { columns, columnCount: children.length };
}

interface Group {
  /** The rows before it. */
  readonly start: number;
  readonly rows: number;
}

/** The first group with rows, and as many columns as are cheap to read. */
function shownOf(
  { row_groups: groups }: FileMetaData,
  names: readonly string[],
): { group?: Group; shown: number } {
  const first = groups.find(({ num_rows }) => num_rows > 0n);
  if (first === undefined) return { shown: 0 };
  const sizes = new Map<string, number>();
  for (const { meta_data } of first.columns) {
    const name = meta_data?.path_in_schema[0];
    const size = Number(meta_data?.total_compressed_size ?? 0);
    if (!(size >= 0)) throw new ParquetRefusal('damaged');
    if (name !== undefined) sizes.set(name, (sizes.get(name) ?? 0) + size);
  }
  let [shown, bytes] = [0, 0];
  for (const name of names) {
    bytes += sizes.get(name) ?? 0;
    if (bytes > READ_MAX_BYTES) break;
    shown++;
  }
  if (shown === 0 && names.length > 0) throw new ParquetRefusal('rowsTooLarge');
  return { group: { start: 0, rows: Number(first.num_rows) }, shown };
}

interface Wanted {
  readonly metadata: FileMetaData;
  readonly columns: readonly string[];
  readonly group: Group;
}

async function rowsOf(file: ParquetFile, { metadata, columns, group }: Wanted): Promise<string[][]> {
  const { size, read } = file;
  let left = READ_MAX_BYTES;
  let refused: unknown;
  const slice = async (start: number, end = size) => {
    const bytes = end - start;
    if (!(start >= 0 && bytes >= 0 && end <= size)) throw new ParquetRefusal('damaged');
    left -= bytes;
    if (left < 0) throw new ParquetRefusal('rowsTooLarge');
    if (bytes === 0) return new ArrayBuffer(0);
    return read(start, end).catch((error: unknown) => {
      refused = error;
      throw error;
    });
  };
  try {
    const rows = await parquetReadObjects({
      file: { byteLength: size, slice },
      metadata,
      columns: [...columns],
      rowStart: group.start,
      rowEnd: Math.min(group.rows, MOST_ROWS),
      compressors: boundedCompressors(),
    });
    return rows.slice(0, MOST_ROWS).map((row) => columns.map((name) => textOf(row[name])));
  } catch (error) {
    if (error === refused || error instanceof ParquetRefusal) throw error;
    const isUnknown = error instanceof Error && /unsupported compression codec/.test(error.message);
    throw new ParquetRefusal(isUnknown ? 'unknownCodec' : 'damaged');
  }
}

/** Pages may claim any size: a few bytes that become gigabytes are refused before memory is taken. */
function boundedCompressors() {
  let left = UNPACKED_MAX_BYTES;
  const bounded =
    (unpack: (input: Uint8Array, bytes: number) => Uint8Array) => (input: Uint8Array, bytes: number) => {
      left -= bytes;
      if (!(bytes >= 0 && left >= 0)) throw new ParquetRefusal('rowsTooLarge');
      return unpack(input, bytes);
    };
  return {
    SNAPPY: bounded((input, bytes) => {
      const page = new Uint8Array(bytes);
      snappyUncompress(input, page);
      return page;
    }),
    GZIP: bounded((input, bytes) => gunzip(input, new Uint8Array(bytes))),
    ZSTD: bounded((input, bytes) => decompress(input, new Uint8Array(bytes))),
    LZ4: bounded(decompressLz4),
    LZ4_RAW: bounded(decompressLz4Raw),
  };
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? '' : value.toISOString();
  if (value instanceof Uint8Array) return cut(hexOf(value));
  if (typeof value !== 'object') return cut(String(value));
  return cut(JSON.stringify(value, inJson) ?? '');
}

function inJson(this: unknown, _: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  return value instanceof Uint8Array ? hexOf(value) : value;
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes.subarray(0, MOST_LETTERS), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function cut(words: string): string {
  return words.length > MOST_LETTERS ? `${words.slice(0, MOST_LETTERS)}…` : words;
}
