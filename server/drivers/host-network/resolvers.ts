/** The name servers of this host. */
import { readFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';

/** IPv4 addresses in the text of a resolv.conf, in its order. */
export function parseResolvers(text: string): string[] {
  const found = [...text.matchAll(/^[ \t]*nameserver[ \t]+(\S+)/gm)].map(([, address]) => address ?? '');
  return [...new Set(found.filter((address) => isIPv4(address)))];
}

/** Name servers of the file; none when it cannot be read. */
export function readResolvers(path = '/etc/resolv.conf'): string[] {
  try {
    return parseResolvers(readFileSync(path, 'utf8'));
  } catch {
    return [];
  }
}

/** Files of systemd-resolved and NetworkManager with the servers behind 127.0.0.53. */
const LISTS = [
  '/etc/resolv.conf',
  '/run/systemd/resolve/resolv.conf',
  '/run/NetworkManager/no-stub-resolv.conf',
] as const;

/** Name servers that are not local to this host, from the first list that has any. */
export function routableResolvers(lists: readonly string[] = LISTS): string[] {
  for (const path of lists) {
    const found = readResolvers(path).filter((address) => !address.startsWith('127.'));
    if (found.length > 0) return found;
  }
  return [];
}
