/** The right to register, and limits of who did: narrower if the public reaches the cloud. */
import { isIP } from 'node:net';
import type { Config } from './config.ts';

/** Registrations per address in 10 minutes: from this computer, and from the public. */
const LOCAL = 300;
const PUBLIC = 20;

/** Percentages of the machines' memory that accounts without granted credits may have together. */
const LOCAL_MEMORY = 100;
const PUBLIC_MEMORY = 50;

type Addresses = Pick<Config, 'host' | 'publicUrl'>;

/** Registration for everyone, for people with an invitation, or only by administrators. */
export type Registration = 'open' | 'invitation' | 'closed';

/** The setting wins; by default registration is open only if no other machine reaches the cloud. */
export function registrationOf(config: Pick<Config, 'registration'> & Addresses): Registration {
  if (config.registration !== 'auto') return config.registration;
  return isLocal(config) ? 'open' : 'invitation';
}

/** The setting wins; by default a reachable cloud allows fewer than one on loopback. */
export function registrationsOf(config: Pick<Config, 'registrationsPerWindow'> & Addresses): number {
  if (config.registrationsPerWindow > 0) return config.registrationsPerWindow;
  return isLocal(config) ? LOCAL : PUBLIC;
}

/** The setting wins, like above. */
export function ungrantedMemoryOf(config: Pick<Config, 'ungrantedMemoryPercent'> & Addresses): number {
  if (config.ungrantedMemoryPercent > 0) return config.ungrantedMemoryPercent;
  return isLocal(config) ? LOCAL_MEMORY : PUBLIC_MEMORY;
}

/** True while only this computer reaches the cloud. */
function isLocal({ host, publicUrl }: Addresses): boolean {
  const hosts = [host, ...(publicUrl === '' ? [] : [new URL(publicUrl).hostname])];
  return hosts.every(isLoopback);
}

/** True for a name or an address that only this computer reaches. */
function isLoopback(host: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, '$1');
  return address === 'localhost' || address === '::1' || (isIP(address) === 4 && address.startsWith('127.'));
}
