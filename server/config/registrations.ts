/** The right to register, and limits of registered accounts: lower if the public reaches the cloud. */
import { isIP } from 'node:net';
import type { Config } from './config.ts';
import { ConfigError, domainName, type Setting } from './setting-kinds.ts';

/** Registrations per address in 10 minutes: from this computer, and from the public. */
const LOCAL = 300;
const PUBLIC = 20;

/** Percentages of the machines' memory that accounts without granted credits may have together. */
const LOCAL_MEMORY = 100;
const PUBLIC_MEMORY = 50;

type Addresses = Pick<Config, 'host' | 'publicUrl'>;

/**
 * Who may register: everyone, people with an invitation, people with a mailbox in some domains, or
 * nobody (administrators create accounts).
 */
export type Registration = 'open' | 'invitation' | 'domain' | 'closed';

type Wanted = 'auto' | 'open' | 'invitation' | 'closed' | `domain:${string}`;

const WORDS = ['auto', 'open', 'invitation', 'closed'] as const;
const DOMAIN = 'domain:';

export const REGISTRATION_SETTING: Setting<Wanted> = {
  env: 'CLOUDLET_REGISTRATION',
  fallback: 'auto',
  help: 'Who gets an account: everyone who registers (open), anyone with an invitation, anyone who gets mail at an address of a domain (`domain:example.org,example.net`; needs CLOUDLET_SMTP_URL), or only users for whom an administrator creates one (closed); auto: open if only this computer can reach the cloud; invitation if CLOUDLET_HOST is not a loopback address or CLOUDLET_PUBLIC_URL names another host (auto, open, invitation, domain:…, closed)',
  parse: (value) => {
    const word = WORDS.find((one) => one === value);
    if (word !== undefined) return word;
    const domains = value.startsWith(DOMAIN) ? domainsIn(value) : [];
    if (domains.length === 0 || domains.some((one) => one === '' || domainName(one) !== undefined))
      throw new ConfigError(`must be one of ${WORDS.join(', ')} or like domain:example.org, got "${value}"`);
    return value as Wanted;
  },
};

const domainsIn = (value: string) => value.slice(DOMAIN.length).split(',');

/** The setting wins; by default registration is open only if no other machine reaches the cloud. */
export function registrationOf(config: Pick<Config, 'registration'> & Addresses): Registration {
  const { registration } = config;
  if (registration === 'auto') return isLocal(config) ? 'open' : 'invitation';
  return registration === 'open' || registration === 'invitation' || registration === 'closed'
    ? registration
    : 'domain';
}

/** The domains whose addresses may register; [] unless that is the policy. */
export function registrationDomains({ registration }: Pick<Config, 'registration'>): readonly string[] {
  return registration.startsWith(DOMAIN) ? domainsIn(registration) : [];
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
export function isLocal({ host, publicUrl }: Addresses): boolean {
  const hosts = [host, ...(publicUrl === '' ? [] : [new URL(publicUrl).hostname])];
  return hosts.every(isLoopback);
}

/** True for a name or an address that only this computer reaches. */
function isLoopback(host: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, '$1');
  return address === 'localhost' || address === '::1' || (isIP(address) === 4 && address.startsWith('127.'));
}
