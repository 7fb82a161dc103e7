/** Returns the free pages of a tenant's file to the disk. */
import type { DatabaseSync } from 'node:sqlite';
import { hostSpace } from './host-space.ts';
import { isBusy, isFull } from './sqlite-error.ts';

/** Kept for the next writes. */
const SPARE_PAGES = 256;
const PAGES = 2000;
/** Above this, SQLite writes nearly each page to the log, for which a full disk has no space. */
const PAGES_LOW = 500;
const LOW_MS = 100;

/** Whether enough pages are free. `isUsed`: sessions exist. */
export function isShrinkable({ freePages, isUsed }: { freePages: number; isUsed: boolean }): boolean {
  return hostSpace.isLow() || (!isUsed && freePages >= SPARE_PAGES);
}

/**
 * Frees a few pages, to be called each second. While the host's disk is low, frees all pages and truncates
 * the log. `now`: monotonic, ms.
 */
export function shrinkFile(database: DatabaseSync, freePages: number, now: () => number): void {
  try {
    if (hostSpace.isLow()) shrinkNow(database, freePages, now);
    else database.exec(`PRAGMA incremental_vacuum(${PAGES})`);
  } catch (error) {
    // Retried soon.
    if (!isBusy(error) && !isFull(error)) throw error;
  }
}

function shrinkNow(database: DatabaseSync, freePages: number, now: () => number): void {
  const until = now() + LOW_MS;
  const writeBack = () => database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  writeBack();
  for (let left = freePages; left > 0 && now() < until; left -= PAGES_LOW) {
    database.exec(`PRAGMA incremental_vacuum(${PAGES_LOW})`);
    writeBack();
  }
}
