/** Ranges of keys of an index. */
import { keyOf } from '../values/key-order.ts';
import { afterPrefix, type KeyRange } from './documents-store.ts';
import type { Index } from './index-values.ts';
import type { Demand } from './plan.ts';

/** The keys after `prefix` with one of the values, or with a text that has one of the prefixes. */
export function rangesOfSpans(
  index: Index,
  prefix: readonly unknown[],
  spans: NonNullable<Demand['spans']>,
): KeyRange[] {
  const keyWith = (value: unknown) => keyOf([...prefix, value], index.descending, index.collation);
  const only = (value: unknown) => ({ low: keyWith(value), high: afterPrefix(keyWith(value)) });
  return spans.flatMap((span) => {
    if ('value' in span) return [only(span.value)];
    // Without the byte that ends the text.
    const low = keyWith(span.beginning).subarray(0, -1);
    const isDescending = index.descending[prefix.length] ?? false;
    // Descending, the end of a text is 255 itself.
    const high = isDescending ? afterPrefix(afterPrefix(low)) : afterPrefix(low);
    // A regular expression also matches itself as a value.
    return [{ low, high }, only(span.regex)];
  });
}

/** Sorted and without overlaps: `$in: [1, 1.0]` is one range. */
export function mergedRanges(ranges: readonly KeyRange[]): KeyRange[] {
  const merged: KeyRange[] = [];
  for (const range of ranges.toSorted(byLow)) {
    const last = merged.at(-1);
    if (last === undefined || startsAfter(range, last)) merged.push(range);
    else merged[merged.length - 1] = { low: last.low, high: laterEnd(last.high, range.high) };
  }
  return merged;
}

function byLow(a: KeyRange, b: KeyRange): number {
  return Buffer.compare(a.low ?? Buffer.alloc(0), b.low ?? Buffer.alloc(0));
}

function startsAfter({ low }: KeyRange, { high }: KeyRange): boolean {
  return high !== null && low !== null && Buffer.compare(low, high) >= 0;
}

function laterEnd(one: Uint8Array | null, other: Uint8Array | null): Uint8Array | null {
  if (one === null || other === null) return null;
  return Buffer.compare(one, other) < 0 ? other : one;
}
