/** Parses Hrana requests. Unknown members are ignored, as the protocol requires. */
import { HranaError } from './hrana-error.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** Throws HranaError `PROTOCOL_ERROR`. */
export function readBody(bytes: Uint8Array): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch {
    throw protocolError('The body is not valid JSON');
  }
  return objectOf(value, 'The body');
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Throws HranaError `PROTOCOL_ERROR`, with a message that begins with `what`. */
export function objectOf(value: unknown, what: string): JsonObject {
  if (!isObject(value)) throw protocolError(`${what} must be an object`);
  return value;
}

/** An optional list; throws HranaError `PROTOCOL_ERROR`. */
export function listOf(value: unknown, what: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw protocolError(`${what} must be a list`);
  return value;
}

export function protocolError(message: string): HranaError {
  return new HranaError('PROTOCOL_ERROR', message);
}

const utf8 = new TextDecoder('utf-8', { fatal: true });
