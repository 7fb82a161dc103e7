/** Values of a file of columns as values of documents, in Extended JSON. */
import type { ColumnKind } from '../../../databases/imports/guesses.ts';

const OBJECT_ID = /^[0-9a-f]{24}$/i;
/** The form of ids in CSV of mongoexport. */
const NAMED_ID = /^ObjectId\(["']?([0-9a-f]{24})["']?\)$/i;
const INT32 = 2 ** 31;
const INT64 = 2n ** 63n;

/** `name`: the field in the documents. */
export function importedValue(kind: ColumnKind, name: string): (value: unknown) => unknown {
  const convert = CONVERTERS[kind];
  const isId = name === '_id' && kind === 'text';
  return (value) => {
    if (value === null || (value === '' && kind !== 'text')) return null;
    const named = typeof value === 'string' ? NAMED_ID.exec(value)?.[1] : undefined;
    if (named !== undefined && kind === 'text') return { $oid: named.toLowerCase() };
    if (isId && typeof value === 'string' && OBJECT_ID.test(value)) return { $oid: value.toLowerCase() };
    return typeof value === 'string' ? convert(value) : value;
  };
}

/** Converters of a kind. They keep a text that does not fit, unless the kind is required. */
const CONVERTERS: Readonly<Record<ColumnKind, (text: string) => unknown>> = {
  text: (text) => text,
  integer: (text) => (/^-?\d+$/.test(text) ? integer(text) : { $numberLong: text }),
  number: (text) => ({ $numberDouble: text }),
  boolean: (text) => (/^true$/i.test(text) ? true : /^false$/i.test(text) ? false : text),
  date: (text) => ({ $date: text }),
  timestamp: (text) => ({ $date: inUtc(text) }),
  bytes: (text) => binary(text),
  json: (text) => parsed(text),
};

function integer(text: string): unknown {
  const number = Number(text);
  if (number >= -INT32 && number < INT32) return number;
  const whole = BigInt(text);
  return whole >= -INT64 && whole < INT64 ? { $numberLong: text } : { $numberDecimal: text };
}

const ZONED = /(?:Z|[+-]\d\d(?::?\d\d)?)$/;

/** A time without a zone is in UTC. */
function inUtc(text: string): string {
  const [day = '', time = '00:00'] = text.split(/[T ]/);
  return ZONED.test(time) ? `${day}T${time}` : `${day}T${time}Z`;
}

function binary(text: string): unknown {
  const digits = /^\\x((?:[0-9a-f]{2})*)$/i.exec(text)?.[1];
  if (digits === undefined) return text;
  return { $binary: { base64: Buffer.from(digits, 'hex').toString('base64'), subType: '00' } };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
