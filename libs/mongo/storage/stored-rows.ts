/** Reads documents from the file: in pages, each document checked against its checksum. */
import type { SQLOutputValue } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import type { Document } from 'bson';
import { HOST_DISK_FULL, hostSpace, isCorrupt, isFull } from '../../sqlite/index.ts';
import { CommandError } from '../command-error.ts';
import type { RawDocument } from '../values/bson-documents.ts';

/** Approximate size of a page of a scan; no statement stays open between pages. */
const PAGE_BYTES = 2 ** 20;
const FIRST_PAGE_ROWS = 16;
const MAX_PAGE_ROWS = 1024;
export interface Row {
  /** Row number in the collection: the natural order. */
  readonly rowNumber: number;
  /** Key of its `_id`. */
  readonly key: Uint8Array;
  readonly bytes: RawDocument;
}

export interface FoundDocument extends Row {
  readonly document: Document;
}

/** Totals of a collection. */
interface Figures {
  readonly documents: number;
  readonly bytes: number;
}

type SqlRow = Record<string, SQLOutputValue>;

/** Rows on demand, by page; `read` returns those after `last`. */
export function* pages(
  { documents, bytes }: Figures,
  read: (last: SqlRow | null, rows: number) => SqlRow[],
): Generator<Row> {
  const most = Math.ceil((PAGE_BYTES * documents) / (bytes + 1));
  let last: SqlRow | null = null;
  for (let rows = FIRST_PAGE_ROWS; ; rows = Math.min(rows * 4, MAX_PAGE_ROWS)) {
    const limit = Math.max(1, Math.min(rows, most));
    const page = read(last, limit);
    for (const row of page) yield asRow(row) as Row;
    if (page.length < limit) return;
    last = page.at(-1) ?? null;
  }
}

/** Throws CommandError if the data was altered. */
export function asRow(row: Record<string, SQLOutputValue> | undefined): Row | undefined {
  if (row === undefined) return undefined;
  const [key, bytes] = [row.own as Uint8Array, row.d as Uint8Array];
  if (row.s !== null && row.s !== checksumOf(key, bytes)) throw damaged();
  return { rowNumber: Number(row.n), key, bytes };
}

/** Checksum of the `_id`'s key and the document. */
export function checksumOf(key: Uint8Array, bytes: Uint8Array): number {
  return crc32(bytes, crc32(key));
}

function damaged(): CommandError {
  return new CommandError('DataCorruptionDetected', 'a stored document does not match its checksum');
}

/** Converts an error of the file for the client; others stay unchanged. */
export function asCommandError(error: unknown): unknown {
  if (hostSpace.isWhy(error)) return new CommandError('OutOfDiskSpace', HOST_DISK_FULL);
  if (isCorrupt(error)) return new CommandError('DataCorruptionDetected', (error as Error).message);
  if (!isFull(error)) return error;
  return new CommandError(
    'OutOfDiskSpace',
    'The database has reached its size limit. Delete documents to free space',
  );
}
