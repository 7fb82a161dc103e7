/**
 * Keeps the servers of accounts from taking the disk of the host: one that takes far more than it may is
 * ended, and all of them are read-only while the disk is nearly full.
 */
import { statfs } from 'node:fs/promises';

/** A server that is up. */
interface Guarded {
  /** Measures the server's files, and ends the server when they are too large. Never rejects. */
  holdToDisk(): Promise<void>;
  readonly engine: { hold(isHeld: boolean): Promise<void> };
}

export interface DiskGuardDeps {
  /** On the file system that they are on. */
  readonly folder: string;
  /** Less of it is free than must stay so. */
  readonly isDiskLow: () => boolean;
  readonly up: () => readonly Guarded[];
}

const CHECK_MS = 250;
/** When so much of the disk went since, it is looked who took it. */
const GROWTH_BYTES = 32 * 2 ** 20;

export class DiskGuard {
  readonly #deps: DiskGuardDeps;
  readonly #timer: NodeJS.Timeout;
  #isChecking = false;
  #isHeld = false;
  /** When all servers were looked at last. */
  #freeBytes = Number.POSITIVE_INFINITY;

  constructor(deps: DiskGuardDeps) {
    this.#deps = deps;
    this.#timer = setInterval(() => void this.#check().catch(() => {}), CHECK_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #check(): Promise<void> {
    const up = this.#deps.up();
    if (this.#isChecking || up.length === 0) return;
    this.#isChecking = true;
    try {
      await this.#endLargest(up);
      const isLow = this.#deps.isDiskLow();
      if (isLow || this.#isHeld)
        await Promise.all(up.map(({ engine }) => engine.hold(isLow).catch(() => {})));
      this.#isHeld = isLow;
    } finally {
      this.#isChecking = false;
    }
  }

  async #endLargest(up: readonly Guarded[]): Promise<void> {
    const { bavail, bsize } = await statfs(this.#deps.folder);
    const free = bavail * bsize;
    const hasShrunk = free < this.#freeBytes - GROWTH_BYTES;
    if (hasShrunk || free > this.#freeBytes) this.#freeBytes = free;
    if (hasShrunk) await Promise.all(up.map((server) => server.holdToDisk()));
  }
}
