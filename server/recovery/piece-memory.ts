/** Memory of pieces: megabytes that the garbage collector sees as a few small objects. */

/** Frees the memory immediately. Only for bytes that nothing else references, not even partly. */
export function release(bytes: Uint8Array): void {
  const { buffer } = bytes;
  // Small buffers share a pool, which is slightly larger than reported and cannot be freed.
  if (buffer instanceof ArrayBuffer && buffer.byteLength > 2 * Buffer.poolSize) buffer.transfer(0);
}

/** Bytes in an ArrayBuffer of their own, so that they can be transferred to another thread. */
export function ownBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const isAlone = bytes.byteLength === bytes.buffer.byteLength && bytes.buffer instanceof ArrayBuffer;
  return isAlone ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes);
}
