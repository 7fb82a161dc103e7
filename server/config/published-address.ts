/** Where ports of machines are published, and whether the console has the same host. */
import { isIP, isIPv4 } from 'node:net';
import type { Config } from './config.ts';

type Settings = Pick<Config, 'host' | 'publishedHost' | 'publishedPorts' | 'publicUrl'>;

interface PublishedAddress {
  /** The address that the ports listen on. */
  readonly listen: string;
  /** The host in their addresses; null: the host that the API was called by. */
  readonly shown: string | null;
}

/**
 * A different loopback address than the console's usual one, so that cookies of one are not sent to
 * the other.
 */
const OTHER_LOOPBACK = ['127.0.0.2', '127.0.0.3'] as const;

/** The host of a URL for an address or a name. */
const inUrl = (host: string) => (isIP(host) === 6 ? `[${host}]` : host);

export function publishedAt({
  host,
  publishedHost,
}: Pick<Settings, 'host' | 'publishedHost'>): PublishedAddress {
  if (isIP(publishedHost) !== 0) return { listen: publishedHost, shown: inUrl(publishedHost) };
  if (publishedHost !== '') return { listen: host, shown: publishedHost };
  const isLoopback = host === 'localhost' || (isIPv4(host) && host.startsWith('127.'));
  // Systems other than Linux have only 127.0.0.1.
  if (!isLoopback || process.platform !== 'linux') return { listen: host, shown: null };
  const [first, second] = OTHER_LOOPBACK;
  const other = host === first ? second : first;
  return { listen: other, shown: other };
}

/** The host name of the console, as far as the settings define it. */
function consoleHost({ publicUrl, host }: Settings): string {
  return publicUrl === '' ? inUrl(host) : new URL(publicUrl).hostname;
}

/** True if machines may be reached at ports of `host`, by default the console's. */
export function isPublishedAt(settings: Settings, host = consoleHost(settings)): boolean {
  if (settings.publishedPorts === 'off') return false;
  return (publishedAt(settings).shown ?? consoleHost(settings)) === host;
}
