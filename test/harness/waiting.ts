/** Waits for asynchronous events; and the blob files of a data directory. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { patienceMs } from '../../server/platform/host/host-facts.ts';

/** Shorter only where the event is known never to come: in a sabotaged copy. */
const GIVE_UP_MS = Number(process.env.FAULTS_GIVE_UP_MS ?? 120_000);
const STEP_MS = 50;

/**
 * The result of `look` once it is truthy. Throws, with the name `what`, only when something must be stuck.
 */
export async function eventually<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
  const startMs = performance.now();
  for (;;) {
    const seen = await look();
    if (seen !== null && seen !== undefined && seen !== false) return seen;
    if (performance.now() - startMs > patienceMs(GIVE_UP_MS)) throw new Error(`waited in vain: ${what}`);
    await sleep(STEP_MS);
  }
}

/** Paths of all blob files, including those of uploads in progress. */
export function blobFiles(dataDir: string): string[] {
  const root = join(dataDir, 'blobs');
  return (
    readdirSync(root, { recursive: true, withFileTypes: true })
      // Except the mark that names their owner.
      .filter((entry) => entry.isFile() && !entry.name.startsWith('.'))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
  );
}
