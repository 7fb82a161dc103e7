/** Header fields that a proxy passes on (RFC 9110 §7.6.1). */
import type { IncomingMessage } from 'node:http';

/** Hop-by-hop headers, and headers that only a trusted proxy may set. */
const OWN = new Set([
  ...[
    'connection',
    'keep-alive',
    'proxy-connection',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
    'expect',
  ],
  ...['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'forwarded', 'x-cloudlet-forwarded'],
]);

/**
 * Fields that `Connection` cannot remove, whatever a client lists there. Without its length, a body
 * would be parsed as the next request on the connection, which other clients share.
 */
const KEPT = new Set(['content-length', 'host']);

/** Alternating names and values, like `rawHeaders`. */
export function endToEnd(raw: readonly string[]): string[] {
  const fields = pairs(raw);
  const named = fields
    .filter(([name]) => name.toLowerCase() === 'connection')
    .flatMap(([, value]) => value.toLowerCase().split(/[\s,]+/))
    .filter((name) => !KEPT.has(name));
  return fields
    .filter(([name]) => !OWN.has(name.toLowerCase()) && !named.includes(name.toLowerCase()))
    .flat();
}

/** Node's client would send the body of a DELETE without framing. */
export function framing({ headers }: Pick<IncomingMessage, 'headers'>): string[] {
  return headers['transfer-encoding'] === undefined ? [] : ['Transfer-Encoding', 'chunked'];
}

export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || !/^0*$/.test(headers['content-length'] ?? '');
}

export function pairs(raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i] ?? '', raw[2 * i + 1] ?? '']);
}
