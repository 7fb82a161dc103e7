/** Computes how many documents `$densify` would create. */
import type { Document } from 'bson';
import { CommandError } from '../../command-error.ts';
import { isDocument, valueAt } from '../../values/field-paths.ts';
import { textKeyOf } from '../../values/key-order.ts';
import { isNumber, plainNumber } from '../../values/numbers.ts';

/** A server's limit. */
const MOST_MADE = 500_000;
const DAY = 86_400_000;
/** The shortest duration of each unit, ms. */
const UNITS: Readonly<Record<string, number>> = {
  millisecond: 1,
  second: 1000,
  minute: 60_000,
  hour: 3_600_000,
  day: DAY,
  week: 7 * DAY,
  month: 28 * DAY,
  quarter: 90 * DAY,
  year: 365 * DAY,
};

/** Throws CommandError for too many. */
export function assertDensifiable(documents: readonly Document[], spec: unknown): void {
  const { field, range, partitionByFields: partitions }: Document = isDocument(spec) ? spec : {};
  if (typeof field !== 'string' || !isDocument(range))
    throw new CommandError(40414, "$densify needs a 'field' and a 'range'");
  const step = plainNumber(range.step) * (range.unit === undefined ? 1 : (UNITS[String(range.unit)] ?? 1));
  if (!(step > 0))
    throw new CommandError(
      5733401,
      'the step parameter in a range statement must be a strictly positive numeric value',
    );
  const path = field.split('.');
  const places = (
    Array.isArray(range.bounds) ? range.bounds : documents.map((each) => valueAt(each, path))
  ).flatMap((value: unknown) =>
    value instanceof Date ? [value.getTime()] : isNumber(value) ? [plainNumber(value)] : [],
  );
  const [low, high] = places.reduce(
    ([least, most], place) => [Math.min(least, place), Math.max(most, place)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  );
  const paths = Array.isArray(partitions) ? partitions.map((each) => String(each).split('.')) : [];
  const keyOf = (document: Document) => textKeyOf(paths.map((each) => valueAt(document, each) ?? null));
  const count = paths.length === 0 ? 1 : new Set(documents.map(keyOf)).size;
  if ((Math.max(0, high - low) / step) * count > MOST_MADE)
    throw new CommandError(5897900, `Generated too many documents in $densify: at most ${MOST_MADE}`);
}
