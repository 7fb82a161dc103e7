/** Waits for what happens by itself; and the blob files of a data directory. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Shorter only where it is known that what is waited for never comes: in a sabotaged copy. */
const GIVE_UP_MS = Number(process.env.FAULTS_GIVE_UP_MS ?? 40_000);

/** Resolves when `holds` does. Rejects, with what was waited for, only when something must be stuck. */
export async function waitUntil(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + GIVE_UP_MS;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await sleep(50);
  }
}

/** Paths of all blob files, those of uploads under way included. */
export function blobFiles(dataDir: string): string[] {
  const root = join(dataDir, 'blobs');
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
