/** The log of a server, kept small. */
import * as fs from 'node:fs';
import { lastLines } from '../../host-process/foreign-files.ts';

const MAX_LOG_BYTES = 16 * 2 ** 20;

export class ServerLog {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** New lines are appended to the rest. */
  trim(): void {
    if (this.#size() > MAX_LOG_BYTES) fs.truncateSync(this.#path);
  }

  /** Adds a line by Cloudlet. */
  add(line: string): void {
    fs.appendFileSync(this.#path, `${line}\n`);
  }

  /** The last whole lines, up to this many bytes. */
  tail(maxBytes: number): string {
    return this.#size() === 0 ? '' : lastLines(this.#path, maxBytes);
  }

  #size(): number {
    return fs.statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
  }
}
