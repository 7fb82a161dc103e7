/** Memory of buffers: megabytes that the garbage collector sees as a few small objects. */

/** Smaller buffers are left to the garbage collector. */
const GIVEN_BACK_BYTES = 16 * 1024;

/**
 * Frees the memory of an unreferenced buffer; a remaining reader finds it empty. Does nothing to a
 * small one or to a view of shared or larger memory. The garbage collector frees it late, with
 * collections of the whole heap, which took a third of the processor time of a large upload.
 */
export function detachBuffer({ buffer, byteLength }: Uint8Array): void {
  const isWhole = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
  if (isWhole && byteLength >= GIVEN_BACK_BYTES) buffer.transfer(0);
}

/** Frees the memory immediately. Only for bytes that nothing else references, even partly. */
export function release(bytes: Uint8Array): void {
  const { buffer } = bytes;
  // Small buffers share a pool, which is slightly larger than reported and cannot be freed.
  if (buffer instanceof ArrayBuffer && buffer.byteLength > 2 * Buffer.poolSize) buffer.transfer(0);
}

/** Bytes in a separate ArrayBuffer, so that they can be transferred to another thread. */
export function ownBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const isAlone = bytes.byteLength === bytes.buffer.byteLength && bytes.buffer instanceof ArrayBuffer;
  return isAlone ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes);
}
