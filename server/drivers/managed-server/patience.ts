/** Waits for a server that is about to answer. */
import { setTimeout as sleep } from 'node:timers/promises';

const COMING_MS = 10_000;
const POLL_MS = 50;

/** Who comes too early, by one of these errors, waits a little while the server should answer. */
export async function patiently<T>(
  connect: () => Promise<T>,
  { isUp, early }: { readonly isUp: () => boolean; readonly early: readonly string[] },
): Promise<T> {
  for (let waited = 0; ; waited += POLL_MS) {
    try {
      return await connect();
    } catch (error) {
      const isComing = early.includes(String((error as NodeJS.ErrnoException).code));
      if (!isComing || !isUp() || waited > COMING_MS) throw error;
      await sleep(POLL_MS);
    }
  }
}
