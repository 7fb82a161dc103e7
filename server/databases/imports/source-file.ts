/** The text of a file of rows: unpacked, and no file of another kind, which would be read as rows. */
import { LoadFailed } from '../engine.ts';
import { begin } from '../file-start.ts';
import { unpacked } from '../packings/packed-dumps.ts';

const HEAD_BYTES = 256;
const SAVE_AS = 'save it as CSV there, and import that';
const PACKED: readonly (readonly [RegExp, string])[] = [
  [
    /^PK[\s\S]{28}(?:\[Content_Types\]\.xml|_rels\/|docProps\/|xl\/)/,
    `is a workbook of Excel, not CSV: ${SAVE_AS}`,
  ],
  [/^PK[\s\S]{28}mimetypeapplication\/vnd\.oasis/, `is a document of LibreOffice, not CSV: ${SAVE_AS}`],
  [/^\xd0\xcf.\xe0/, `is a workbook of Excel, not CSV: ${SAVE_AS}`],
];
const LOAD = 'load it into a database (`POST …/load`, `cloudlet db load`)';
const PLAIN: readonly (readonly [RegExp, string])[] = [
  [/^PAR1/, 'is a Parquet file: convert it to CSV or JSON'],
  [/^(?:SQLite format 3\0|PGDMP)/, `is a database, not rows: ${LOAD}`],
  [
    /^(?:\xef\xbb\xbf)?\s*(?:(?:CREATE\s+(?:TABLE|DATABASE|SCHEMA|EXTENSION)|INSERT\s+INTO|PRAGMA)\s|-- ?(?:PostgreSQL|MySQL|MariaDB|phpMyAdmin|Adminer)|--\r?\n)/i,
    `is SQL, not rows: ${LOAD}`,
  ],
  [/^\s*<(?:!doctype html|html)\b/i, 'is a web page: its address may require a login'],
];

/**
 * Throws LoadFailed for files of other kinds, damaged ones, and archives of several files. `bound` limits
 * what each packing unpacks to.
 */
export function sourceFile(
  file: AsyncIterable<Uint8Array>,
  bound: (layer: AsyncIterable<Uint8Array>) => AsyncGenerator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  return without(unpacked(without(file, PACKED), { bound }), PLAIN);
}

async function* without(
  file: AsyncIterable<Uint8Array>,
  others: readonly (readonly [RegExp, string])[],
): AsyncGenerator<Uint8Array> {
  const { head, whole, close } = await begin(file, ({ length }) => length >= HEAD_BYTES);
  const text = head.toString('latin1', 0, HEAD_BYTES);
  const what = others.find(([begins]) => begins.test(text))?.[1];
  if (what === undefined) {
    yield* whole;
    return;
  }
  await close();
  throw new LoadFailed(`The file ${what}`);
}
