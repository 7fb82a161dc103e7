/** Converts values of a file for the columns of a table. */
import type { ColumnKind } from './guesses.ts';

export type Convert = (value: unknown) => unknown;

/** Differences between engines. */
export interface ImportTraits {
  /** Whether a time may have a zone; else it is stored in UTC without one. */
  readonly hasZones: boolean;
  /** Converts values for tables without column types; missing: columns have types. */
  readonly convert?: (kind: ColumnKind, name: string) => Convert;
}

const BYTES = /^\\x((?:[0-9a-fA-F]{2})*)$/;
const ZONED = /(?:Z|[+-]\d\d(?::?\d\d)?)$/;

/** null: a column of an existing table, which accepts the values it can. */
export function converterOf(kind: ColumnKind | null, { hasZones }: ImportTraits): Convert {
  if (kind === 'bytes') return asBytes;
  if (kind === 'boolean') return asBoolean;
  if (kind === 'timestamp' && !hasZones) return inUtc;
  // An empty field is neither a number nor a date.
  if (kind !== null && kind !== 'text') return (value) => (value === '' ? null : value);
  return (value) => value;
}

/** Reads bytes as exports write them. Other values are passed to the engine, which refuses them. */
function asBytes(value: unknown): unknown {
  const digits = typeof value === 'string' ? BYTES.exec(value)?.[1] : undefined;
  if (digits !== undefined) return { base64: Buffer.from(digits, 'hex').toString('base64') };
  return value === '' ? { base64: '' } : value;
}

function asBoolean(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  if (/^true$/i.test(value)) return true;
  if (/^false$/i.test(value)) return false;
  return value === '' ? null : value;
}

function inUtc(value: unknown): unknown {
  if (value === '') return null;
  if (typeof value !== 'string' || !ZONED.test(value)) return value;
  const at = new Date(value.replace(' ', 'T'));
  return Number.isNaN(at.getTime()) ? value : at.toISOString().slice(0, -1).replace('T', ' ');
}
