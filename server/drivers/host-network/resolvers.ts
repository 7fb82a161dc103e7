/** The name servers that this host asks. */
import { readFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';

/** IPv4 addresses in the text of a resolv.conf, in its order. */
export function parseResolvers(text: string): string[] {
  const found = [...text.matchAll(/^[ \t]*nameserver[ \t]+(\S+)/gm)].map(([, address]) => address ?? '');
  return [...new Set(found.filter((address) => isIPv4(address)))];
}

/** Those of the file; none when it cannot be read. */
export function readResolvers(path = '/etc/resolv.conf'): string[] {
  try {
    return parseResolvers(readFileSync(path, 'utf8'));
  } catch {
    return [];
  }
}
