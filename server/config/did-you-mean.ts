/** Suggests the meant name for a mistyped one. */

/**
 * The entry of `known` closest to `typed`, case-insensitive; undefined if none is close enough for a typing
 * error. Always returns an entry of `known`, never `typed`.
 */
export function didYouMean(typed: string, known: Iterable<string>): string | undefined {
  if (typed.length > LONGEST) return undefined;
  const given = typed.toLowerCase();
  let nearest: string | undefined;
  let least = slipsOf(given.length) + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - given.length) >= least) continue;
    const slips = distance(given, candidate.toLowerCase());
    if (slips < least) [nearest, least] = [candidate, slips];
  }
  return nearest;
}

/** Maximum characters compared. The work grows with the square of it. */
const LONGEST = 128;

function slipsOf(length: number): number {
  if (length < 3) return 0;
  return length < 6 ? 1 : 2;
}

/** Edit distance from `a` to `b`: insertions, deletions, replacements, and swaps of neighbours. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      const replaced = (last[j - 1] as number) + (isSame ? 0 : 1);
      let least = Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, replaced);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) least = Math.min(least, (before[j - 2] as number) + 1);
      row.push(least);
    }
    [before, last] = [last, row];
  }
  return last[b.length] as number;
}
