/**
 * How a blob is divided into the parts of an upload: whole frames, so that the length of a part is
 * known before it is sealed.
 */

/** 8 MiB of plaintext; smaller blobs are stored with one request. */
const FIRST_FRAMES = 128;
/** From here on parts grow: 5 TiB must fit into S3's 10,000 parts. */
const GROW_AFTER = 2000;
const GROW_EVERY = 49;

/**
 * Frames of part `index`, from 0: 8 MiB each up to 16 GiB, then 8 MiB more every 49 parts, at most 1.3 GiB.
 */
export function framesOfPart(index: number): number {
  return FIRST_FRAMES * (1 + Math.max(0, Math.floor((index - GROW_AFTER) / GROW_EVERY)));
}
