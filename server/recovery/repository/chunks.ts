/** Splits a stream of bytes into the pieces that a repository stores. */

export const BLOCK_BYTES = 2 ** 20;
/** A block of a hole. Sources of large files yield this object, so that its bytes need no check. */
export const HOLE = Buffer.alloc(BLOCK_BYTES);

/**
 * Blocks of equal length, the last one shorter: for files that are changed in place, such as disks
 * and SQLite files.
 */
export async function* fixedBlocks(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let block = Buffer.allocUnsafe(BLOCK_BYTES);
  let filled = 0;
  for await (const bytes of source) {
    if (bytes === HOLE && filled === 0) {
      yield HOLE;
      continue;
    }
    for (let at = 0; at < bytes.length; ) {
      const taken = Math.min(BLOCK_BYTES - filled, bytes.length - at);
      block.set(bytes.subarray(at, at + taken), filled);
      at += taken;
      filled += taken;
      if (filled < BLOCK_BYTES) continue;
      yield block;
      block = Buffer.allocUnsafe(BLOCK_BYTES);
      filled = 0;
    }
  }
  if (filled > 0) yield block.subarray(0, filled);
}

const MIN_BYTES = 256 * 1024;
const MAX_BYTES = 4 * 2 ** 20;
/** Boundaries are rarer before the target length and more likely after it (FastCDC's normalized chunking). */
const RARE = 0xffff_f800;
const LIKELY = 0xffff_8000;

/**
 * Content-defined chunks of about 1 MiB: a row inserted into a dump changes only the chunks around it. The
 * boundary is FastCDC's (Xia et al., USENIX ATC 2016, §3): a gear hash of 32 bits.
 */
export async function* contentChunks(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let parts: Uint8Array[] = [];
  let length = 0;
  for await (const bytes of source) {
    parts.push(Buffer.from(bytes));
    length += bytes.length;
    if (length < 2 * MAX_BYTES) continue;
    let held = Buffer.concat(parts);
    while (held.length >= MAX_BYTES) {
      const end = boundaryOf(held);
      const chunk = held.subarray(0, end);
      held = held.subarray(end);
      yield chunk;
    }
    length = held.length;
    parts = length > 0 ? [held] : [];
  }
  for (let held = Buffer.concat(parts); held.length > 0; ) {
    const end = boundaryOf(held);
    const chunk = held.subarray(0, end);
    held = held.subarray(end);
    // The consumer of the last chunk may reuse its memory.
    yield chunk;
  }
}

function boundaryOf(bytes: Uint8Array): number {
  const end = Math.min(bytes.length, MAX_BYTES);
  if (end <= MIN_BYTES) return end;
  let hash = 0;
  const middle = Math.min(end, BLOCK_BYTES);
  let i = MIN_BYTES;
  for (; i < middle; i++) {
    hash = ((hash << 1) + (GEAR[bytes[i] as number] as number)) | 0;
    if ((hash & RARE) === 0) return i + 1;
  }
  for (; i < end; i++) {
    hash = ((hash << 1) + (GEAR[bytes[i] as number] as number)) | 0;
    if ((hash & LIKELY) === 0) return i + 1;
  }
  return end;
}

/** 256 fixed pseudo-random numbers: xorshift32 from 1. */
const GEAR: Uint32Array = Uint32Array.from({ length: 256 }, gear());

function gear(): () => number {
  let state = 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}
