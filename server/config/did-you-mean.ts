/** Suggests a name for a mistyped one. */
import { slipsBetween } from '../../libs/near-names/index.ts';

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
    const slips = slipsBetween(given, candidate.toLowerCase());
    if (slips < least) [nearest, least] = [candidate, slips];
  }
  return nearest;
}

/** Maximum characters compared, because the work grows quadratically. */
const LONGEST = 128;

function slipsOf(length: number): number {
  if (length < 3) return 0;
  return length < 6 ? 1 : 2;
}
