/** How many accounts one address may register. */
import { isIP } from 'node:net';
import type { Config } from './config.ts';

/** Registrations per address in 10 minutes: of this computer's own programs, and of strangers. */
const LOCAL = 300;
const PUBLIC = 20;

/** The setting wins; without it strangers, once they reach the cloud, get fewer than this computer. */
export function registrationsOf({
  registrationsPerWindow,
  host,
  publicUrl,
}: Pick<Config, 'registrationsPerWindow' | 'host' | 'publicUrl'>): number {
  if (registrationsPerWindow > 0) return registrationsPerWindow;
  const hosts = [host, ...(publicUrl === '' ? [] : [new URL(publicUrl).hostname])];
  return hosts.every(isLoopback) ? LOCAL : PUBLIC;
}

/** True for a name or an address that only this computer reaches. */
function isLoopback(host: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, '$1');
  return address === 'localhost' || address === '::1' || (isIP(address) === 4 && address.startsWith('127.'));
}
