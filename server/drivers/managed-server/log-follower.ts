/**
 * Reads what a server adds to its log, and keeps that small. What is cut away takes the rest of its line with
 * it: a piece of a tenant's text must not look like a line.
 */
import * as fs from 'node:fs';

/** Taken at once; what is before it is left out. */
const MAX_BYTES = 2 ** 20;
const MAX_LOG_BYTES = 16 * 2 ** 20;

export class LogFollower {
  readonly #path: string;
  #at: number | null = null;
  /** A line whose end is not there yet. */
  #rest = '';
  /** Its beginning was left out. */
  #isCut = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** What is there by now is not taken. Called again, it changes nothing. */
  begin(): void {
    this.#at ??= this.#size();
  }

  /** Whole lines that were added since the last call. */
  take(): string[] {
    const size = this.#size();
    let from = this.#at ?? size;
    if (size - from > MAX_BYTES) {
      from = size - MAX_BYTES;
      this.#cut();
    }
    this.#at = size;
    if (size <= from) return [];
    const lines = (this.#rest + this.#read(from, size - from)).split('\n');
    this.#rest = lines.pop() ?? '';
    if (this.#isCut && lines.length > 0) {
      lines.shift();
      this.#isCut = false;
    }
    if (this.#rest.length > MAX_BYTES) this.#cut();
    return lines;
  }

  /** What is added meanwhile goes on behind what is left. */
  trim(): void {
    if (this.#size() <= MAX_LOG_BYTES) return;
    fs.truncateSync(this.#path);
    this.#at = 0;
    this.#cut();
  }

  #cut(): void {
    this.#rest = '';
    this.#isCut = true;
  }

  #size(): number {
    return fs.statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
  }

  #read(from: number, length: number): string {
    const fd = fs.openSync(this.#path, 'r');
    try {
      const bytes = Buffer.alloc(length);
      return bytes.subarray(0, fs.readSync(fd, bytes, 0, length, from)).toString();
    } finally {
      fs.closeSync(fd);
    }
  }
}
