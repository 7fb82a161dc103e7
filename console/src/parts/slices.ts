/** Long work of a page in slices, so that no input waits for all of it. */

/** Work that pauses wherever it may be interrupted. */
export type Work<Result> = Generator<undefined, Result, void>;

/**
 * Input that arrives meanwhile waits for one slice and the drawing that it causes: less than 50 ms in all.
 */
const SLICE_MS = 8;

export function atOnce<Result>(work: Work<Result>): Result {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
  }
}

/** Rejects with the signal's reason once it is aborted. */
export async function inSlices<Result>(work: Work<Result>, signal: AbortSignal): Promise<Result> {
  for (;;) {
    signal.throwIfAborted();
    const until = performance.now() + SLICE_MS;
    while (performance.now() < until) {
      const { done, value } = work.next();
      if (done === true) return value;
    }
    await new Promise((resolve) => setTimeout(resolve));
  }
}
