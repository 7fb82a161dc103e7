/** Smaller buffers are left to the garbage collector. */
const GIVEN_BACK_BYTES = 16 * 1024;

/**
 * Frees the memory of an unreferenced buffer; a remaining reader finds it empty. Does nothing to a small one
 * or to a view of shared or larger memory. The garbage collector sees a buffer as a small object, so it frees
 * it late, with collections of the whole heap: those took a third of the processor time of a large upload.
 */
export function detachBuffer({ buffer, byteLength }: Uint8Array): void {
  const isWhole = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
  if (isWhole && byteLength >= GIVEN_BACK_BYTES) buffer.transfer(0);
}
