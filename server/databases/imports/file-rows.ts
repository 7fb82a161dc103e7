/** Rows of a CSV or JSON file as it arrives; its beginning decides the options that are not set. */
import { invalidField } from '../../platform/errors.ts';
import { BrokenText, CsvReader, type CsvRow } from './csv-reader.ts';
import {
  type EmptyMeaning,
  formatOf,
  hasHeader,
  type ImportFormat,
  meaningOf,
  ROW_CHARACTERS,
  separatorOf,
} from './guesses.ts';
import { JsonReader, type JsonRow, typedNumber } from './json-reader.ts';

export interface SourceAsk {
  /** undefined: guessed, here and below. */
  readonly format?: ImportFormat | undefined;
  readonly separator?: string | undefined;
  readonly header?: boolean | undefined;
  readonly empty: EmptyMeaning;
  /** Whether the objects of a JSON file are stored as documents; default: as fields. */
  readonly hasDocuments?: boolean;
}

export interface ImportedRow {
  readonly line: number;
  /** In the order of the fields. */
  readonly values: readonly unknown[];
  readonly characters: number;
}

export interface FileRows {
  readonly format: ImportFormat;
  /** null: not CSV, here and below. */
  readonly separator: string | null;
  readonly header: boolean | null;
  readonly fields: readonly string[];
  /** Whether each row is one whole document; missing: false. */
  readonly isWhole?: boolean;
  /** The rows at the beginning of the file. */
  readonly beginning: readonly ImportedRow[];
  /** All rows, including those of the beginning. */
  readonly rows: AsyncIterable<readonly ImportedRow[]>;
}

const BEGINNING_CHARACTERS = 256 * 1024;
const BEGINS_TOO_LONG = 'begins with a row of more than 256 KB, too long to detect its fields';
const MOST_FIELDS = 2000;

/** Throws BrokenText, and `invalid_request` for a file without fields. */
export async function readRows(file: AsyncIterable<Uint8Array>, ask: SourceAsk): Promise<FileRows> {
  const pieces = decoded(file)[Symbol.asyncIterator]();
  let beginning = '';
  let isAll = false;
  while (beginning.length < BEGINNING_CHARACTERS && !isAll) {
    const { done, value } = await pieces.next();
    if (done === true) isAll = true;
    else beginning += value;
  }
  const text = { beginning, isAll, pieces };
  return (ask.format ?? formatOf(beginning)) === 'csv'
    ? csvRows(text, ask)
    : ask.hasDocuments === true
      ? documentRows(text)
      : jsonRows(text);
}

interface Text {
  readonly beginning: string;
  /** Whether the beginning is the whole file. */
  readonly isAll: boolean;
  readonly pieces: AsyncIterator<string>;
}

interface Reader<Row> {
  push(text: string): readonly Row[];
  end(): readonly Row[];
}

async function* rest<Row>(reader: Reader<Row>, { pieces }: Text): AsyncGenerator<readonly Row[]> {
  for (let next = await pieces.next(); next.done !== true; next = await pieces.next())
    yield reader.push(next.value);
  yield reader.end();
}

/** A line by which spreadsheets name the separator; it is not a row. */
const SEPARATOR_LINE = /^\ufeff?"?sep=(.)"?(\r?\n)/i;

function csvRows(whole: Text, { separator: chosen, header: isHeader, empty }: SourceAsk): FileRows {
  const [line = '', named, end = ''] = SEPARATOR_LINE.exec(whole.beginning) ?? [];
  // An empty line in its place keeps the line numbers correct.
  const text = { ...whole, beginning: end + whole.beginning.slice(line.length) };
  const separator = chosen ?? named ?? separatorOf(text.beginning);
  const reader = new CsvReader({ separator, mostCharacters: ROW_CHARACTERS });
  const read = [...reader.push(text.beginning), ...(text.isAll ? reader.end() : [])];
  const first = end === '' ? read : read.slice(1);
  const header = isHeader ?? hasHeader(first);
  const width = first[0]?.fields.length ?? 0;
  assertWidth(width);
  const fields = distinct(
    Array.from({ length: width }, (_, at) => {
      const name = header ? (first[0]?.fields[at] ?? '').trim() : '';
      return name === '' ? `column_${at + 1}` : name;
    }),
  );
  assertFields(fields, text);
  const rowsOf = (rows: readonly CsvRow[]) =>
    // A blank line is a row only if rows have one field, which is then NULL.
    rows
      .filter(({ fields: found }) => width === 1 || found.length > 1 || found[0] !== null)
      .map((row) => csvRow(row, width, empty));
  const beginning = rowsOf(header ? first.slice(1) : first);
  async function* rows() {
    yield beginning;
    if (!text.isAll) for await (const more of rest(reader, text)) yield rowsOf(more);
  }
  return { format: 'csv', separator, header, fields, beginning, rows: rows() };
}

/** Makes names unique, ignoring case: `id`, `name`, `id_2`. */
function distinct(names: readonly string[]): string[] {
  const taken = new Set(names.map((name) => name.toLowerCase()));
  /** The last number appended to each name. */
  const numbers = new Map<string, number>();
  return names.map((name) => {
    const folded = name.toLowerCase();
    const last = numbers.get(folded);
    let at = last ?? 1;
    if (last !== undefined) for (at++; taken.has(`${folded}_${at}`); ) at++;
    numbers.set(folded, at);
    if (last === undefined) return name;
    taken.add(`${folded}_${at}`);
    return `${name}_${at}`;
  });
}

function csvRow({ line, fields }: CsvRow, width: number, empty: EmptyMeaning): ImportedRow {
  if (fields.length !== width) throw new BrokenText(line, `has ${fields.length} fields instead of ${width}`);
  const values = fields.map((field) => meaningOf(field, empty));
  return { line, values, characters: fields.reduce((sum, field) => sum + (field?.length ?? 0), 0) };
}

function jsonRows(text: Text): FileRows {
  const reader = new JsonReader({ mostCharacters: ROW_CHARACTERS });
  const first = [...reader.push(text.beginning), ...(text.isAll ? reader.end() : [])];
  const fields = [...new Set(first.flatMap(({ value }) => Object.keys(value)))];
  assertFields(fields, text);
  const known = new Set(fields);
  const rowsOf = (rows: readonly JsonRow[]) => rows.map((row) => jsonRow(row, fields, known));
  const beginning = rowsOf(first);
  async function* rows() {
    yield beginning;
    if (!text.isAll) for await (const more of rest(reader, text)) yield rowsOf(more);
  }
  return { format: 'json', separator: null, header: null, fields, beginning, rows: rows() };
}

/** Objects as documents. Numbers stay exact: fractions, and more digits than JavaScript has. */
function documentRows(text: Text): FileRows {
  const reader = new JsonReader({ mostCharacters: ROW_CHARACTERS, revive: typedNumber });
  const rowsOf = (rows: readonly JsonRow[]): readonly ImportedRow[] =>
    rows.map(({ line, value, characters }) => ({ line, values: [value], characters }));
  const beginning = rowsOf([...reader.push(text.beginning), ...(text.isAll ? reader.end() : [])]);
  async function* rows() {
    yield beginning;
    if (!text.isAll) for await (const more of rest(reader, text)) yield rowsOf(more);
  }
  const about = { format: 'json' as const, separator: null, header: null, fields: ['document'] };
  return { ...about, isWhole: true, beginning, rows: rows() };
}

function jsonRow(
  { line, value, characters }: JsonRow,
  fields: readonly string[],
  known: ReadonlySet<string>,
): ImportedRow {
  const other = Object.keys(value).find((name) => !known.has(name));
  if (other !== undefined)
    throw new BrokenText(
      line,
      `has a member ${other}, which the objects at the beginning of the file do not have`,
    );
  const values = fields.map((name) => (Object.hasOwn(value, name) ? value[name] : null));
  return { line, values, characters };
}

function assertFields(fields: readonly string[], { isAll }: Pick<Text, 'isAll'>): void {
  if (fields.length === 0) throw invalidField('file', isAll ? 'has no rows' : BEGINS_TOO_LONG);
  assertWidth(fields.length);
}

function assertWidth(fields: number): void {
  if (fields > MOST_FIELDS) throw invalidField('file', `has more than ${MOST_FIELDS} fields`);
}

/** UTF-8, or UTF-16 with a byte order mark. Throws BrokenText for other bytes. */
async function* decoded(file: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let decoder: TextDecoder | null = null;
  let line = 1;
  let head: Uint8Array = new Uint8Array();
  const decode = (bytes: Uint8Array, stream: boolean) => {
    try {
      decoder ??= new TextDecoder(encodingOf(bytes), { fatal: true });
      const text = decoder.decode(bytes, { stream });
      for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) line++;
      return text;
    } catch {
      throw new BrokenText(line, 'is not UTF-8 (from about here): save the file as UTF-8');
    }
  };
  for await (const piece of file) {
    if (decoder === null && head.length + piece.length < 2) {
      head = piece;
      continue;
    }
    const bytes = decoder === null && head.length > 0 ? Buffer.concat([head, piece]) : piece;
    yield decode(bytes, true);
  }
  yield decode(decoder === null ? head : new Uint8Array(), false);
}

function encodingOf([first, second]: Uint8Array): string {
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  return first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
}
