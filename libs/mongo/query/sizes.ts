/** Expressions that mingo lacks: sizes in bytes, positions in texts, and parts of timestamps. */
import { Binary, calculateObjectSize, Long, Timestamp } from 'bson';
import { CommandError } from '../command-error.ts';
import { isDocument } from '../values/field-paths.ts';
import { isNumber, plainNumber } from '../values/numbers.ts';
import { typeNameOf } from '../values/type-names.ts';

function refused(code: number, wanted: string, value: unknown): CommandError {
  return new CommandError(code, `${wanted}, found: ${typeNameOf(value)}`);
}

function partOf(name: string, code: number, read: (value: Timestamp) => number) {
  return ([value]: unknown[]) => {
    if (value instanceof Timestamp) return Long.fromNumber(read(value));
    throw refused(code, `${name} requires a timestamp`, value);
  };
}

/** In code points, from `start`, `end` exclusive; -1: not found. */
function indexOfCP([text, part, start = 0, end]: unknown[]): number {
  if (typeof text !== 'string')
    throw refused(40093, '$indexOfCP requires a string as the first argument', text);
  if (typeof part !== 'string')
    throw refused(40094, '$indexOfCP requires a string as the second argument', part);
  const points = [...text];
  const [from, to] = [start, end ?? points.length].map((each) => {
    const index = isNumber(each) ? plainNumber(each) : Number.NaN;
    if (Number.isInteger(index) && index >= 0) return index;
    throw refused(40097, '$indexOfCP requires a nonnegative integer as a starting or ending index', each);
  }) as [number, number];
  if (from > Math.min(to, points.length)) return -1;
  const before = points.slice(0, from).join('').length;
  const at = points.slice(0, to).join('').indexOf(part, before);
  return at === -1 ? -1 : [...text.slice(0, at)].length;
}

/** Never called with null. Each throws CommandError. */
export const SIZES: Readonly<Record<string, (values: unknown[]) => unknown>> = {
  $binarySize: ([value]) => {
    if (typeof value === 'string') return Buffer.byteLength(value);
    if (value instanceof Binary) return value.length();
    throw refused(51276, '$binarySize requires a string or BinData', value);
  },
  $bsonSize: ([value]) => {
    if (isDocument(value)) return calculateObjectSize(value);
    throw refused(31393, '$bsonSize requires a document', value);
  },
  $indexOfCP: indexOfCP,
  $tsSecond: partOf('$tsSecond', 5687301, (value) => value.t),
  $tsIncrement: partOf('$tsIncrement', 5687302, (value) => value.i),
};
