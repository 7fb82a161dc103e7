/** The number of cases of a property test: a fifth in `npm test`, all in `npm run test:all`. */
const SHARE = process.env.TEST_CASES === 'some' ? 5 : 1;

/** For `numRuns` of fast-check. */
export function cases(all: number): number {
  return Math.ceil(all / SHARE);
}
