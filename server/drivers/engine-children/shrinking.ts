/** Gives the room that deleted rows left in a tenant's file back to the disk. */
import type { DatabaseSync } from 'node:sqlite';
import { systemClock } from '../../platform/clock.ts';
import { hostRoom } from './host-room.ts';
import { isBusy, isFull } from './sqlite-error.ts';

/** Kept for what is written next. */
const SPARE_PAGES = 256;
const PAGES = 2000;
/** Of more at once SQLite writes nearly each page to the log, for which a full disk has no room. */
const PAGES_LOW = 500;
const LOW_MS = 100;

/** Whether there is enough to give. `isUsed`: somebody has a session. */
export function isShrinkable({ freePages, isUsed }: { freePages: number; isUsed: boolean }): boolean {
  return hostRoom.isLow() || (!isUsed && freePages >= SPARE_PAGES);
}

/**
 * A little at a time, to be called each second. While the host's disk is low it is more, down to the last
 * page and with the log.
 */
export function shrinkFile(database: DatabaseSync, freePages: number): void {
  try {
    if (hostRoom.isLow()) shrinkNow(database, freePages);
    else database.exec(`PRAGMA incremental_vacuum(${PAGES})`);
  } catch (error) {
    // It is tried again soon.
    if (!isBusy(error) && !isFull(error)) throw error;
  }
}

function shrinkNow(database: DatabaseSync, freePages: number): void {
  const until = systemClock.monotonic() + LOW_MS;
  const writeBack = () => database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  writeBack();
  for (let left = freePages; left > 0 && systemClock.monotonic() < until; left -= PAGES_LOW) {
    database.exec(`PRAGMA incremental_vacuum(${PAGES_LOW})`);
    writeBack();
  }
}
