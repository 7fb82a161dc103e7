/** The memory that pieces are in: megabytes, of which the collector sees only that they are few objects. */

/** Gives it back now. Only for bytes that nobody else uses, also no part of them. */
export function release(bytes: Uint8Array): void {
  const { buffer } = bytes;
  // Small ones share the memory of a pool, which is a little larger than it says, and cannot be given back.
  if (buffer instanceof ArrayBuffer && buffer.byteLength > 2 * Buffer.poolSize) buffer.transfer(0);
}

/** Bytes that are alone in their memory, so that they can be given to another thread. */
export function ownBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const isAlone = bytes.byteLength === bytes.buffer.byteLength && bytes.buffer instanceof ArrayBuffer;
  return isAlone ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes);
}
