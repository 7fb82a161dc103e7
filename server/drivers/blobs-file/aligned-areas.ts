/** Memory from which the kernel can write past its page cache, and whether it does so here. */
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { asFault } from './blob-fault.ts';
import { TAG_BYTES } from './blob-format.ts';
import { CHUNKS_PER_SLOT, LARGE_SLOT_BYTES } from './slot-pool.ts';

/** Addresses, offsets and lengths are multiples of it. No disk in use wants more. */
export const BLOCK_BYTES = 4096;

const WASM_PAGE_BYTES = 65_536;
/** Room for a slot in frames, behind the part of a block that was left of the one before. */
const AREA_PAGES = Math.ceil(
  (LARGE_SLOT_BYTES + CHUNKS_PER_SLOT * TAG_BYTES + BLOCK_BYTES) / WASM_PAGE_BYTES,
);
const AREA_BYTES = AREA_PAGES * WASM_PAGE_BYTES;
/** Two for each file that is written at full speed; more files take turns. */
const AREAS = 8;
/** Missing from node:fs; the value on every processor Node runs on. */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY;

/** Node's types leave it to those of browsers. */
declare const WebAssembly: {
  readonly Memory: new (pages: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
};

/** The areas of one thread, which writes files below one directory. */
export class AlignedAreas {
  readonly #directory: string;
  readonly #idle: Buffer[] = [];
  readonly #waiting: ((area: Buffer) => void)[] = [];
  #usable: boolean | undefined;

  constructor(directory: string) {
    this.#directory = directory;
    // The one kind of memory in JavaScript that begins at a page: V8 maps it as such. Pages that nobody
    // touches take no room.
    const pages = AREAS * AREA_PAGES;
    const { buffer } = new WebAssembly.Memory({ initial: pages, maximum: pages });
    for (let i = 0; i < AREAS; i++) this.#idle.push(Buffer.from(buffer, i * AREA_BYTES, AREA_BYTES));
  }

  /** True when files can be written with O_DIRECT from here: not every file system takes it. */
  get usable(): boolean {
    this.#usable ??= this.#tryOut();
    return this.#usable;
  }

  #tryOut(): boolean {
    const [area] = this.#idle;
    if (area === undefined) return false;
    try {
      const fd = openSync(this.#directory, O_TMPFILE | constants.O_WRONLY | constants.O_DIRECT, 0o600);
      try {
        return writeSync(fd, area, 0, BLOCK_BYTES, 0) === BLOCK_BYTES;
      } finally {
        closeSync(fd);
      }
    } catch (error) {
      // A full disk says nothing of what it can do otherwise.
      return asFault(error, 'write').code === 'ENOSPC';
    }
  }

  /** Whoever takes one gives it back without waiting for another. */
  take(): Promise<Buffer> {
    const area = this.#idle.pop();
    return area ? Promise.resolve(area) : new Promise((resolve) => this.#waiting.push(resolve));
  }

  give(area: Buffer): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(area);
    else next(area);
  }
}
