/** Memory for direct I/O, and whether the file system supports it. */
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { asFault } from '../blob-frames/blob-fault.ts';
import { TAG_BYTES } from '../blob-frames/blob-format.ts';
import { CHUNKS_PER_SLOT, LARGE_SLOT_BYTES } from '../blob-frames/slot-pool.ts';

/** Addresses, offsets and lengths are multiples of it. No common disk needs more. */
export const BLOCK_BYTES = 4096;

const WASM_PAGE_BYTES = 65_536;
/** Space for a slot in frames, after the incomplete block of the previous one. */
const AREA_PAGES = Math.ceil(
  (LARGE_SLOT_BYTES + CHUNKS_PER_SLOT * TAG_BYTES + BLOCK_BYTES) / WASM_PAGE_BYTES,
);
const AREA_BYTES = AREA_PAGES * WASM_PAGE_BYTES;
/** Missing from node:fs; the value on every processor Node runs on. */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY;

/** Node's types omit it as a browser global. */
declare const WebAssembly: {
  readonly Memory: new (pages: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
};

/** Error codes for missing support of O_DIRECT or unnamed files. */
const REFUSALS = new Set(['EINVAL', 'EOPNOTSUPP', 'EISDIR']);

/** The buffers of one thread, which writes files below one directory. */
export class AlignedAreas {
  readonly #directory: string;
  readonly #count: number;
  #idle: Buffer[] = [];
  readonly #waiting: ((area: Buffer) => void)[] = [];
  #usable: boolean | undefined;

  /** A file written at full speed uses two of `count`; more files wait in turn. 0 disables it. */
  constructor(directory: string, count: number) {
    this.#directory = directory;
    this.#count = count;
  }

  /** True if O_DIRECT works here: not every file system supports it. */
  get usable(): boolean {
    this.#usable ??= this.#count === 0 ? false : this.#tryOut();
    return this.#usable ?? false;
  }

  /** undefined: unknown, because there was no free descriptor or the disk was full. */
  #tryOut(): boolean | undefined {
    try {
      const areas = allocate(this.#count);
      const fd = openSync(this.#directory, O_TMPFILE | constants.O_WRONLY | constants.O_DIRECT, 0o600);
      try {
        writeSync(fd, areas[0] ?? Buffer.alloc(0), 0, BLOCK_BYTES, 0);
      } finally {
        closeSync(fd);
      }
      this.#idle = areas;
      return true;
    } catch (error) {
      // Not a system error: the address space is too small for the buffer.
      const code = asFault(error, 'write').code;
      return code === '' || REFUSALS.has(code) ? false : undefined;
    }
  }

  /** A holder must release its area without waiting for another. */
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

/**
 * The only page-aligned memory in JavaScript: V8 maps WebAssembly memory that way, reserving ten GiB of
 * addresses. Untouched pages take no memory.
 */
function allocate(count: number): Buffer[] {
  const pages = count * AREA_PAGES;
  const { buffer } = new WebAssembly.Memory({ initial: pages, maximum: pages });
  return Array.from({ length: count }, (_, i) => Buffer.from(buffer, i * AREA_BYTES, AREA_BYTES));
}
