/** Waits, in tests, for asynchronous results. */
import { setTimeout as sleep } from 'node:timers/promises';
import { patienceMs } from '../platform/host/host-facts.ts';

/** Longer than any operation on an idle host; no test waits for all of it. */
const PATIENCE_MS = 30_000;
const STEP_MS = 10;

/** The result of `probe` once it is truthy. Throws with the name of `probe` at the time limit. */
export async function eventually<T>(probe: () => T | Promise<T>): Promise<NonNullable<T>> {
  const startMs = performance.now();
  for (;;) {
    const seen = await probe();
    if (seen !== null && seen !== undefined && seen !== false) return seen;
    if (performance.now() - startMs > patienceMs(PATIENCE_MS)) throw new Error(`waited in vain: ${probe}`);
    await sleep(STEP_MS);
  }
}
