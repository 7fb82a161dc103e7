/** How many cases of a property are tried: a fifth in `npm test`, all in `npm run test:all`. */
const SHARE = process.env.TEST_CASES === 'some' ? 5 : 1;

/** For `numRuns` of fast-check. */
export function cases(all: number): number {
  return Math.ceil(all / SHARE);
}
