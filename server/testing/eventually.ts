/** Waits, in tests, for asynchronous results. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Longer than anything takes on a busy machine; nothing waits for it to pass. */
const PATIENCE_MS = 30_000;
const STEP_MS = 10;

/** The result of `look`, once it is truthy. Throws, naming `look`, when something must be stuck. */
export async function eventually<T>(look: () => T | Promise<T>): Promise<NonNullable<T>> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const seen = await look();
    if (seen !== null && seen !== undefined && seen !== false) return seen;
    if (performance.now() > deadline) throw new Error(`waited in vain: ${look}`);
    await sleep(STEP_MS);
  }
}
