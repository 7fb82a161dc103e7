/** The host's disk as a child sees it: while little is left there, the tenant's file does not grow. */
import { statfsSync } from 'node:fs';
import { isDiskError, isFull } from './sqlite-error.ts';

/** With less left SQLite may fail anywhere, whatever is to stay free. */
const SCARCE_BYTES = 1024 * 1024;
/** The room for growth is rounded down to such a share of what is to stay free, and so changes seldom. */
const STEPS = 8;
/** What is written goes to the log, and from there to the file. */
const TIMES_WRITTEN = 2;

export const HOST_DISK_FULL =
  "The host's disk is full, not the database: nothing grows until there is room on the host. Deleting goes on";

/** The disk had no room for what is no part of the database's size, such as a copy of it. */
export class DiskFull extends Error {
  constructor(cause?: unknown) {
    super(HOST_DISK_FULL, { cause });
    this.name = 'DiskFull';
  }
}

class HostRoom {
  /** What the host wants to stay free; Cloudlet tells it. */
  keepFreeBytes = 0;
  #isLimit = false;

  /** Less is free than should stay so: nothing may grow. */
  isLow(): boolean {
    return freeBytes() < this.keepFreeBytes;
  }

  /** The size that a file may have now, given what it has and may have by itself. */
  limitFor(sizeBytes: number, ownLimitBytes: number): number {
    const limit = sizeBytes + this.growthBytes();
    this.#isLimit = limit < ownLimitBytes;
    return Math.min(limit, ownLimitBytes);
  }

  /** By so many bytes a file may grow now. */
  growthBytes(): number {
    if (this.keepFreeBytes === 0) return Number.POSITIVE_INFINITY;
    const step = this.keepFreeBytes / STEPS;
    const spare = (freeBytes() - this.keepFreeBytes) / TIMES_WRITTEN;
    return Math.max(0, Math.floor(spare / step) * step);
  }

  /** Throws DiskFull when a copy of so many bytes would leave too little. */
  assertRoomFor(bytes: number): void {
    if (freeBytes() - bytes < this.keepFreeBytes) throw new DiskFull();
  }

  /** Whether the host's disk is the reason of an error, and not the database's own limit. */
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

/** Of this process: a child serves one tenant, in one folder. */
export const hostRoom = new HostRoom();
