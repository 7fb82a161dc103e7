/** Windows of `$setWindowFields`: the documents of a partition around each. */
import type { Document } from 'bson';
import { CommandError } from '../../command-error.ts';
import { spend } from '../../command-time.ts';
import type { SortSpec } from '../../storage/plan.ts';
import { isDocument, valueAt } from '../../values/field-paths.ts';
import { isNumber, plainNumber } from '../../values/numbers.ts';

/** A range of positions, end exclusive. */
type Bounds = (at: number) => readonly [from: number, to: number];

export interface Window {
  /** Whether the window begins at the start of the partition. */
  readonly isFromStart: boolean;
  boundsIn(documents: readonly Document[], sort: SortSpec): Bounds;
}

/** Units with a fixed length. */
const UNIT_MS: Readonly<Record<string, number>> = {
  week: 604_800_000,
  day: 86_400_000,
  hour: 3_600_000,
  minute: 60_000,
  second: 1000,
  millisecond: 1,
};

const bad = (message: string) => new CommandError('FailedToParse', message);

/** Null: all documents of the partition. Throws CommandError. */
export function readWindow(window: unknown, sort: SortSpec): Window | null {
  if (window === undefined) return null;
  if (!isDocument(window)) throw bad("'window' field must be an object");
  const { documents, range, unit } = window;
  if (documents === undefined && range === undefined) {
    if (Object.keys(window).length === 0) return null;
    throw bad("'window' field that specifies a 'unit' must specify 'range'-based bounds");
  }
  if (documents !== undefined && range !== undefined)
    throw bad("Window bounds can specify either 'documents' or 'range', not both");
  if (documents !== undefined && unit !== undefined) throw bad("Window bounds of 'documents' have no 'unit'");
  const [low = null, high = null] = pairOf(documents ?? range, documents !== undefined);
  if (low !== null && high !== null && low > high)
    throw new CommandError(5339900, 'Lower bound must not exceed upper bound');
  if (low === null && high === null) return null;
  if (sort.length === 0 && documents !== undefined)
    throw new CommandError(5339901, "'documents'-based bounds require a sortBy");
  const isFromStart = low === null;
  if (documents !== undefined) return { isFromStart, boundsIn: (all) => placesAround(all, low, high) };
  if (sort.length !== 1 || sort[0]?.[1] !== 1)
    throw new CommandError(5339902, 'Range-based bounds require a sortBy with exactly one ascending field');
  const unitMs = unitOf(unit);
  return { isFromStart, boundsIn: (all, [[path] = ['']]) => valuesAround(all, { path, unitMs, low, high }) };
}

/** Null: unbounded. `current` is 0. */
function pairOf(value: unknown, isWhole: boolean): (number | null)[] {
  if (!Array.isArray(value) || value.length !== 2) throw bad('Window bounds must be an array of 2 elements');
  return value.map((each) => {
    if (each === 'unbounded') return null;
    if (each === 'current') return 0;
    const number = isNumber(each) ? plainNumber(each) : Number.NaN;
    if (Number.isNaN(number) || (isWhole && !Number.isInteger(number)))
      throw bad(`Window bounds must be 'unbounded', 'current' or ${isWhole ? 'an integer' : 'a number'}`);
    return number;
  });
}

function unitOf(unit: unknown): number | null {
  if (unit === undefined) return null;
  const ms = typeof unit === 'string' && Object.hasOwn(UNIT_MS, unit) ? UNIT_MS[unit] : undefined;
  if (ms !== undefined) return ms;
  throw bad(`'unit' of a window may be ${Object.keys(UNIT_MS).join(', ')} here`);
}

function placesAround({ length }: readonly Document[], low: number | null, high: number | null): Bounds {
  const within = (place: number) => Math.max(0, Math.min(length, place));
  return (at) => {
    const from = low === null ? 0 : within(at + low);
    return [from, Math.max(from, high === null ? length : within(at + high + 1))];
  };
}

interface Range {
  readonly path: string;
  /** null: the bounds are numbers without a unit. */
  readonly unitMs: number | null;
  readonly low: number | null;
  readonly high: number | null;
}

function valuesAround(documents: readonly Document[], { path, unitMs, low, high }: Range): Bounds {
  const parts = path.split('.');
  const values = documents.map((document) => {
    spend();
    const value = valueAt(document, parts);
    if (unitMs !== null && value instanceof Date) return value.getTime();
    if (unitMs === null && isNumber(value)) return plainNumber(value);
    const kind = unitMs === null ? 'numbers' : 'dates';
    throw new CommandError(5429414, `A window by range needs ${kind} to sort by, in each document`);
  });
  const scale = unitMs ?? 1;
  /** The first position whose value is not below that one, or with `isAfter` above it. */
  const placeOf = (limit: number, isAfter: boolean) => {
    let [least, most] = [0, values.length];
    while (least < most) {
      const middle = (least + most) >> 1;
      const value = values[middle] as number;
      if (value < limit || (isAfter && value === limit)) least = middle + 1;
      else most = middle;
    }
    return least;
  };
  return (at) => {
    const value = values[at] as number;
    const from = low === null ? 0 : placeOf(value + low * scale, false);
    return [from, high === null ? values.length : placeOf(value + high * scale, true)];
  };
}
