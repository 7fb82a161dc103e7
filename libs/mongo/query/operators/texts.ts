/** Operators on texts, with evaluated operands; a missing one is undefined. */
import { BSONRegExp, BSONSymbol, Code, type Document, Timestamp } from 'bson';
import { CommandError } from '../../command-error.ts';
import { isNumber, plainNumber } from '../../values/numbers.ts';
import { isNil, typeNameOf } from '../../values/type-names.ts';
import { SIZES } from '../sizes.ts';
import type { Operator } from './operator.ts';

/** The maximum size of a document. */
const MAX_LENGTH = 16 * 2 ** 20;

function refused(code: number, wanted: string, value: unknown): CommandError {
  return new CommandError(code, `${wanted}, found: ${typeNameOf(value)}`);
}

function textOf(value: unknown, code: number, wanted: string): string {
  if (typeof value === 'string') return value;
  throw refused(code, wanted, value);
}

/** Converts a value to text, null to an empty one. Throws CommandError. */
function coerced(value: unknown): string {
  if (isNil(value)) return '';
  if (typeof value === 'string') return value;
  if (value instanceof Date) return value.toISOString();
  if (isNumber(value) || value instanceof BSONSymbol || value instanceof Timestamp) return String(value);
  if (value instanceof Code) return String(value.code);
  throw new CommandError(16007, `can't convert from BSON type ${typeNameOf(value)} to String`);
}

function indexIn(value: unknown, code: number, what: string): number {
  const index = isNumber(value) ? plainNumber(value) : Number.NaN;
  if (Number.isInteger(index) && index >= 0) return index;
  throw refused(code, `${what} must be a nonnegative integer`, value);
}

/** In bytes, from `start`, `end` exclusive; -1: not found. */
function indexOfBytes([text, part, start = 0, end]: unknown[]): unknown {
  if (isNil(text)) return null;
  const bytes = Buffer.from(textOf(text, 40091, '$indexOfBytes requires a string as the first argument'));
  const wanted = Buffer.from(textOf(part, 40092, '$indexOfBytes requires a string as the second argument'));
  const from = indexIn(start, 40097, 'the start of $indexOfBytes');
  const to = Math.min(
    bytes.length,
    end === undefined ? bytes.length : indexIn(end, 40097, 'the end of $indexOfBytes'),
  );
  if (from > to) return -1;
  return bytes.subarray(0, to).indexOf(wanted, from);
}

function substringOfBytes([value, start, count]: unknown[]): string {
  const bytes = Buffer.from(coerced(value));
  const [from, length] = [start, count].map((each, i) => {
    if (isNumber(each)) return Math.trunc(plainNumber(each));
    throw refused(
      i === 0 ? 16034 : 16035,
      `$substrBytes: ${i === 0 ? 'starting index' : 'length'} must be a number`,
      each,
    );
  }) as [number, number];
  if (from < 0)
    throw new CommandError(50752, `$substrBytes: starting index must be non-negative (got: ${from})`);
  const to = length < 0 ? bytes.length : Math.min(bytes.length, from + length);
  if (from >= bytes.length) return '';
  const isWithin = (at: number) => at < bytes.length && ((bytes[at] as number) & 0xc0) === 0x80;
  if (isWithin(from))
    throw new CommandError(
      28656,
      '$substrBytes: Invalid range, starting index is a UTF-8 continuation byte.',
    );
  if (isWithin(to))
    throw new CommandError(
      28657,
      '$substrBytes: Invalid range, ending index is in the middle of a UTF-8 character.',
    );
  return bytes.toString('utf8', from, to);
}

function substringOfPoints([value, start, count]: unknown[]): string {
  const [from, length] = [
    indexIn(start, 34450, '$substrCP: starting index'),
    indexIn(count, 34452, '$substrCP: length'),
  ];
  return [...coerced(value)].slice(from, from + length).join('');
}

function compareFolded([a, b]: unknown[]): number {
  const [one, other] = [coerced(a), coerced(b)].map((each) => Buffer.from(each.toUpperCase())) as [
    Buffer,
    Buffer,
  ];
  return Math.sign(Buffer.compare(one, other));
}

const WHITE = new Set(
  '\0 \t\n\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a',
);

function trimmed(name: string, ends: 'both' | 'left' | 'right'): (values: Document) => unknown {
  return (values) => {
    const { input, chars } = values;
    if (isNil(input) || ('chars' in values && isNil(chars))) return null;
    const points = [...textOf(input, 50699, `${name} requires its input to be a string`)];
    const unwanted =
      chars === undefined ? WHITE : new Set(textOf(chars, 50700, `${name} requires 'chars' to be a string`));
    let [from, to] = [0, points.length];
    if (ends !== 'right') while (from < to && unwanted.has(points[from] as string)) from++;
    if (ends !== 'left') while (to > from && unwanted.has(points[to - 1] as string)) to--;
    return points.slice(from, to).join('');
  };
}

function replacing(name: string, isAll: boolean): (values: Document) => unknown {
  return ({ input, find, replacement }) => {
    for (const [value, what, code] of [
      [input, 'input', 51746],
      [find, 'find', 51745],
      [replacement, 'replacement', 51744],
    ] as const)
      if (!isNil(value)) textOf(value, code, `${name} requires that '${what}' be a string`);
    if ([input, find, replacement].some(isNil)) return null;
    const put = () => replacement as string;
    if (!isAll) return input.replace(find, put);
    const count = find === '' ? input.length + 1 : input.split(find).length - 1;
    if (input.length + count * (replacement.length - find.length) > MAX_LENGTH)
      throw new CommandError(
        'BSONObjectTooLarge',
        `${name} cannot return more than ${MAX_LENGTH} characters`,
      );
    return input.replaceAll(find, put);
  };
}

function concatenated(values: unknown[]): unknown {
  if (values.some(isNil)) return null;
  const texts = values.map((each) => textOf(each, 16702, '$concat only supports strings'));
  if (texts.reduce((sum, { length }) => sum + length, 0) > MAX_LENGTH)
    throw new CommandError('BSONObjectTooLarge', `$concat cannot return more than ${MAX_LENGTH} characters`);
  return texts.join('');
}

function split([text, separator]: unknown[]): unknown {
  if (isNil(text) || isNil(separator)) return null;
  const whole = textOf(
    text,
    40085,
    '$split requires an expression that evaluates to a string as a first argument',
  );
  if (separator instanceof BSONRegExp)
    throw refused(40086, '$split requires a string as a second argument', separator);
  const by = textOf(
    separator,
    40086,
    '$split requires an expression that evaluates to a string as a second argument',
  );
  if (by === '') throw new CommandError(40087, '$split requires a non-empty separator');
  return whole.split(by);
}

/** Operators with operands in a row. */
export const TEXTS: Readonly<Record<string, Operator>> = {
  $concat: { work: concatenated },
  $indexOfBytes: { from: 2, to: 4, work: indexOfBytes },
  $indexOfCP: {
    from: 2,
    to: 4,
    work: (values) => (isNil(values[0]) ? null : SIZES.$indexOfCP?.(values)),
  },
  $split: { from: 2, to: 2, work: split },
  $strLenBytes: {
    from: 1,
    to: 1,
    work: ([text]) => Buffer.byteLength(textOf(text, 34473, '$strLenBytes requires a string argument')),
  },
  $strLenCP: {
    from: 1,
    to: 1,
    work: ([text]) => [...textOf(text, 34471, '$strLenCP requires a string argument')].length,
  },
  $strcasecmp: { from: 2, to: 2, work: compareFolded },
  $substr: { from: 3, to: 3, work: substringOfBytes },
  $substrBytes: { from: 3, to: 3, work: substringOfBytes },
  $substrCP: { from: 3, to: 3, work: substringOfPoints },
  $toLower: { from: 1, to: 1, work: ([text]) => coerced(text).toLowerCase() },
  $toUpper: { from: 1, to: 1, work: ([text]) => coerced(text).toUpperCase() },
};

/** Operators with named operands. */
export const NAMED_TEXTS: Readonly<Record<string, (values: Document) => unknown>> = {
  $trim: trimmed('$trim', 'both'),
  $ltrim: trimmed('$ltrim', 'left'),
  $rtrim: trimmed('$rtrim', 'right'),
  $replaceOne: replacing('$replaceOne', false),
  $replaceAll: replacing('$replaceAll', true),
};
