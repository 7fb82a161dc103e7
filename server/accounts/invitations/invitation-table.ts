/** A CSV table of invitations, one row each, as saved by spreadsheets. */
import { CsvError, parse } from 'csv-parse/sync';
import { AppError, type FieldProblem } from '../../platform/errors.ts';
import type { AccountFields } from '../account-fields.ts';
import { assertAccountFields, foldEmail, foldUsername } from '../account-fields.ts';
import { MOST_INVITED } from './invitation-schema.ts';

const COLUMNS = ['username', 'email', 'label', 'plan', 'credits', 'spend_cap', 'account_expires_at'] as const;
type Column = (typeof COLUMNS)[number];

/** A row with the number of its last line; an empty field is omitted. */
export interface TableRow {
  readonly line: number;
  readonly fields: Partial<Record<Column, string>>;
}

/** Maximum problems reported. */
const MOST_NAMED = 20;

interface Parsed {
  readonly record: Record<string, string>;
  readonly info: { readonly lines: number };
}

/**
 * Every row, or `invalid_request` with the problems by line: an unreadable table, an unknown
 * column, a name or an address that breaks its rule or occurs twice.
 */
export function readInvitationTable(csv: string): TableRow[] {
  assertUnicode(csv);
  const rows = parsed(csv);
  if (rows.length === 0) throw refusal([{ field: 'csv', message: 'has no rows below its header' }]);
  if (rows.length > MOST_INVITED)
    throw refusal([{ field: 'csv', message: `has ${rows.length} rows; at most ${MOST_INVITED}` }]);
  const problems = rows.flatMap(problemsOf);
  problems.push(...doubles(rows, 'username', foldUsername), ...doubles(rows, 'email', foldEmail));
  if (problems.length > 0) throw refusal(problems);
  return rows;
}

/** Decoders put U+FFFD in place of bytes that are not UTF-8. */
function assertUnicode(csv: string): void {
  const at = csv.indexOf('\uFFFD');
  if (at === -1) return;
  const line = csv.slice(0, at).split(/\r\n|[\n\r]/).length;
  const message = 'has characters that are not UTF-8; save the table as "CSV UTF-8"';
  throw refusal([{ field: `csv line ${line}`, message }]);
}

/** An invitation as its row describes it. */
export function wantedOf({ fields }: TableRow) {
  const { credits, spend_cap: cap, ...texts } = fields;
  return {
    ...texts,
    ...(credits !== undefined && { credits: decimal(credits) }),
    ...(cap !== undefined && { spend_cap: decimal(cap) }),
  };
}

/** NaN for any other notation: nobody writes 0x10 for 16 credits. */
const decimal = (text: string) => (/^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN);

/** Problems by line, in the order of the table. */
export function refusal(problems: readonly FieldProblem[]): AppError {
  const more = problems.length - MOST_NAMED;
  const what =
    problems.length === 1 ? 'One field of the table is' : `${problems.length} fields of the table are`;
  const note = more > 0 ? `; the first ${MOST_NAMED} are named` : '';
  return new AppError('invalid_request', `${what} wrong${note}; nobody was invited`, {
    fields: problems.slice(0, MOST_NAMED),
  });
}

/** A problem of a row: `csv line 7, username`. */
export function atLine(line: number, column: string, message: string): FieldProblem {
  return { field: `csv line ${line}, ${column}`, message };
}

function parsed(csv: string): TableRow[] {
  const header = (names: string[]) => {
    const columns = names.map((name) => name.trim().toLowerCase());
    const problems = columns.flatMap((name, i) => {
      if (!(COLUMNS as readonly string[]).includes(name))
        return [atLine(1, name, `is not a column; the columns are ${COLUMNS.join(', ')}`)];
      return columns.indexOf(name) < i ? [atLine(1, name, 'occurs twice')] : [];
    });
    if (problems.length > 0) throw refusal(problems);
    return columns;
  };
  // Spreadsheets in some languages separate by semicolons, because the comma is a decimal sign.
  const delimiter = /^[^\n\r]*/.exec(csv)?.[0].includes(';') ? ';' : ',';
  try {
    const rows: unknown = parse(csv, { bom: true, columns: header, delimiter, trim: true, ...OPTIONS });
    return (rows as Parsed[]).map(({ record, info }) => {
      const given = Object.entries(record).filter(([, text]) => text !== '');
      return { line: info.lines, fields: Object.fromEntries(given) };
    });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw refusal([{ field: 'csv', message: `cannot be read: ${error.message}` }]);
  }
}

const OPTIONS = {
  info: true,
  skip_empty_lines: true,
  // Spreadsheets save the empty rows below a table as separators alone.
  skip_records_with_empty_values: true,
  max_record_size: 10_000,
} as const;

function problemsOf({ line, fields }: TableRow): FieldProblem[] {
  const { username, email, label = '' } = fields;
  const given: AccountFields = { username, email };
  try {
    assertAccountFields(given);
    return label.length > 200 ? [atLine(line, 'label', 'must be at most 200 characters')] : [];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return (error.fields ?? []).map(({ field, message }) => atLine(line, field, message));
  }
}

function doubles(
  rows: readonly TableRow[],
  column: 'username' | 'email',
  fold: (text: string) => string,
): FieldProblem[] {
  const first = new Map<string, number>();
  return rows.flatMap(({ line, fields }) => {
    const text = fields[column];
    if (text === undefined) return [];
    const seen = first.get(fold(text));
    if (seen !== undefined) return [atLine(line, column, `is also on line ${seen}`)];
    first.set(fold(text), line);
    return [];
  });
}
