/** Conditions, orders and rows as they are typed on the command line. */
import type { DatabaseRowFilter, DatabaseRowSort } from '../../sdk/index.ts';
import { UsageError } from '../failures.ts';
import { givenText } from '../text-file.ts';

export type RowValues = Record<string, unknown>;

const SYMBOLS = { '=': 'eq', '!=': 'ne', '<>': 'ne', '<': 'lt', '<=': 'le', '>': 'gt', '>=': 'ge' } as const;
const TERM = /^(.+?)(?:\s+(contains|starts_with)\s+|\s*(<=|>=|!=|<>|=|<|>)\s*)(.*)$/s;
const NULL_TERM = /^(\S.*?)\s+is\s+(not\s+)?null$/is;

/**
 * `price > 5`, `name contains x`, `note is null`, or the filter as JSON, for names that contain operators.
 * Values of documents have types: 5 is a number, "5" text. In tables, the column gives the type.
 */
export function filterOf(text: string, { hasTypes }: { readonly hasTypes: boolean }): DatabaseRowFilter {
  if (text.trimStart().startsWith('{')) return objectOf('--filter', text) as unknown as DatabaseRowFilter;
  const nothing = NULL_TERM.exec(text);
  const term = TERM.exec(text);
  if (nothing !== null && (term === null || (term[1] ?? '').length > (nothing[1] ?? '').length)) {
    const [, column = '', not] = nothing;
    return { column, operator: not === undefined ? 'is_null' : 'is_not_null' };
  }
  if (term === null)
    throw new UsageError(
      `--filter: ${text} is not a condition`,
      `Examples: 'price >= 5', 'name contains tea', 'name starts_with T', 'note is null', 'note is not null'`,
    );
  const [, column = '', word, symbol, value = ''] = term;
  const operator =
    symbol === undefined ? (word as 'contains' | 'starts_with') : SYMBOLS[symbol as keyof typeof SYMBOLS];
  return { column, operator, value: hasTypes && word === undefined ? typed(value) : value };
}

/** `price`, `price desc` */
export function sortOf(text: string): DatabaseRowSort {
  const [, column = text, order = 'asc'] = /^(.*\S)\s+(asc|desc)$/is.exec(text) ?? [];
  return { column, descending: order.toLowerCase() === 'desc' };
}

/** An object of values by column, or the text of the file after an @. Throws UsageError. */
export function rowOf(what: string, given: string): RowValues {
  return objectOf(what, givenText(given));
}

/** One object of values by column, or a list of them. */
export function rowsOf(what: string, given: string): RowValues[] {
  const read = parsed(what, givenText(given));
  const rows = Array.isArray(read) ? read : [read];
  return rows.map((row) => asObject(what, row));
}

/** Parses a MongoDB query filter. */
export function objectOf(what: string, text: string): RowValues {
  return asObject(what, parsed(what, text));
}

function asObject(what: string, read: unknown): RowValues {
  if (typeof read === 'object' && read !== null && !Array.isArray(read)) return read as RowValues;
  throw new UsageError(`${what} is not a JSON object`, `Example: '{"id": 1, "name": "Tea"}', or @FILE`);
}

function parsed(what: string, text: string): unknown {
  try {
    return JSON.parse(text, (_, value: unknown) => {
      if (typeof value !== 'number' || !Number.isInteger(value) || Number.isSafeInteger(value)) return value;
      throw new UsageError(
        `${what}: ${value} cannot be written exactly as a JSON number`,
        'Write the number as text, in quotes',
      );
    });
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(
      `${what} is not JSON: ${(error as Error).message}`,
      `Example: '{"id": 1, "name": "Tea"}', or @FILE`,
    );
  }
}

function typed(value: string): unknown {
  try {
    const read: unknown = JSON.parse(value);
    return typeof read === 'number' && String(read) !== value ? value : read;
  } catch {
    return value;
  }
}
