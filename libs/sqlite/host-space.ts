/** The host's disk as seen by a child: while it is low, the tenant's file does not grow. */
import { statfsSync } from 'node:fs';
import { isDiskError, isFull } from './sqlite-error.ts';

/** Below this SQLite may fail anywhere, whatever the reserve is. */
const SCARCE_BYTES = 1024 * 1024;
/** The space for growth is rounded down to this fraction of the reserve, so that it rarely changes. */
const STEPS = 8;
/** Data is written to the log, and from there to the file. */
const TIMES_WRITTEN = 2;

export const HOST_DISK_FULL =
  "The host's disk is full, not the database: nothing can grow until space is freed. Deleting still works";

/** The disk has no space beyond the database's size, such as for a copy. */
export class DiskFull extends Error {
  constructor(cause?: unknown) {
    super(HOST_DISK_FULL, { cause });
    this.name = 'DiskFull';
  }
}

class HostSpace {
  /** Reserve of the host, set by Cloudlet. */
  keepFreeBytes = 0;
  #isLimit = false;

  /** Whether free space is below the reserve, so that nothing may grow. */
  isLow(): boolean {
    return freeBytes() < this.keepFreeBytes;
  }

  /** Maximum size of a file now, given its size and its own limit. */
  limitFor(sizeBytes: number, ownLimitBytes: number): number {
    const limit = sizeBytes + this.growthBytes();
    this.#isLimit = limit < ownLimitBytes;
    return Math.min(limit, ownLimitBytes);
  }

  /** Bytes that a file may grow now. */
  growthBytes(): number {
    if (this.keepFreeBytes === 0) return Number.POSITIVE_INFINITY;
    const step = this.keepFreeBytes / STEPS;
    const spare = (freeBytes() - this.keepFreeBytes) / TIMES_WRITTEN;
    return Math.max(0, Math.floor(spare / step) * step);
  }

  /** Throws DiskFull if a copy of that size would use the reserve. */
  assertSpaceFor(bytes: number): void {
    if (freeBytes() - bytes < this.keepFreeBytes) throw new DiskFull();
  }

  /** Whether the host's disk caused an error, not the database's own limit. */
  isWhy(error: unknown): boolean {
    if (error instanceof DiskFull || (error as Error).message === HOST_DISK_FULL) return true;
    if (isFull(error)) return this.#isLimit || freeBytes() < Math.max(SCARCE_BYTES, this.keepFreeBytes);
    return isDiskError(error) && freeBytes() < SCARCE_BYTES;
  }
}

function freeBytes(): number {
  const { bavail, bsize } = statfsSync('.');
  return bavail * bsize;
}

/** One per process: a process serves one tenant, in one folder. */
export const hostSpace = new HostSpace();
