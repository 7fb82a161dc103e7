/** Networks of callers, for limits. */
import { isIPv4, isIPv6 } from 'node:net';

/** The /24 of an IPv4 address or the /64 of an IPv6 one. */
export function networkOf(address: string): string {
  const source = sourceOf(address);
  return isIPv4(source) ? `${source.slice(0, source.lastIndexOf('.'))}.0/24` : source;
}

/**
 * The source that limits count as one caller: an IPv4 address, because a whole office shares a /24,
 * or the /64 of an IPv6 address, because one host has all of it. An IPv4-mapped address counts as
 * IPv4; other text is returned unchanged.
 */
export function sourceOf(address: string): string {
  const plain = address.replace(/%.*$/, '').toLowerCase();
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(plain)?.[1] ?? plain;
  if (isIPv4(mapped) || !isIPv6(plain)) return mapped;
  const [head = '', tail] = plain.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    // A dotted tail stands for two groups, so it is in the first four only if the head is that
    // long.
    const tailGroups = tail === '' ? 0 : tail.split(':').length + (tail.includes('.') ? 1 : 0);
    while (groups.length < Math.min(4, 8 - tailGroups)) groups.push('0');
    if (groups.length < 4) groups.push(...tail.split(':').slice(0, 4 - groups.length));
  }
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}
