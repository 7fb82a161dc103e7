/** Range requests (RFC 9110 §14): one range of bytes. */

export interface ByteRange {
  /** First byte. */
  readonly start: number;
  /** One past the last. */
  readonly end: number;
}

/**
 * The part of `sizeBytes` that a Range header asks for; 'unsatisfiable' for 416; undefined when the whole
 * is to be sent: no header, another unit, bad syntax, or several ranges (which a server may ignore).
 */
export function parseRange(
  header: string | undefined,
  sizeBytes: number,
): ByteRange | 'unsatisfiable' | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return undefined;
  if (match[1] === '') {
    const suffix = Number(match[2]);
    return suffix === 0 || sizeBytes === 0
      ? 'unsatisfiable'
      : { start: Math.max(0, sizeBytes - suffix), end: sizeBytes };
  }
  const start = Number(match[1]);
  const last = match[2] === '' ? Number.POSITIVE_INFINITY : Number(match[2]);
  if (last < start) return undefined;
  return start >= sizeBytes ? 'unsatisfiable' : { start, end: Math.min(last + 1, sizeBytes) };
}
