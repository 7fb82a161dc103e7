/**
 * Modification times of files, stored in the metadata `mtime` like rclone: seconds since 1970 with
 * a fraction.
 */

/** File systems and 53-bit numbers lose less than this. */
const TOLERANCE_MS = 2;
export const MTIME_HEADER = 'x-amz-meta-mtime';

export function mtimeText(mtimeNs: bigint): string {
  const text = mtimeNs.toString().padStart(10, '0');
  return `${text.slice(0, -9)}.${text.slice(-9)}`;
}

/** ms since 1970; undefined: the text is not a time. */
export function readMtime(text: unknown): number | undefined {
  const seconds = typeof text === 'string' && text !== '' ? Number(text) : Number.NaN;
  return Number.isFinite(seconds) ? seconds * 1000 : undefined;
}

export function isSameTime(oneMs: number, otherMs: number): boolean {
  return Math.abs(oneMs - otherMs) <= TOLERANCE_MS;
}
