/**
 * Parses JSON that strangers sent, under limits: valid UTF-8, at most 64 levels, no key that could reach a
 * prototype.
 */
import { AppError } from './errors.ts';

/** Of a body, unless its route declares more. Reading one holds up all other callers. */
export const JSON_MAX_BYTES = 16 * 1024;
const JSON_MAX_DEPTH = 64;

/** The one member that assigning it makes a prototype of. */
const FORBIDDEN_KEY = '__proto__';
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Throws AppError `invalid_json`. An empty body is undefined. */
export function parseJson(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch (cause) {
    throw new AppError('invalid_json', 'The body is not valid JSON in UTF-8', { cause });
  }
  inspect(value, 1);
  return value;
}

function inspect(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth > JSON_MAX_DEPTH) {
    throw new AppError('invalid_json', `The JSON is nested deeper than ${JSON_MAX_DEPTH} levels`);
  }
  if (Array.isArray(value)) {
    for (const item of value) inspect(item, depth + 1);
    return;
  }
  for (const key of Object.keys(value)) {
    if (key === FORBIDDEN_KEY)
      throw new AppError('invalid_json', `The JSON has the forbidden member "${key}"`);
    inspect((value as Record<string, unknown>)[key], depth + 1);
  }
}
