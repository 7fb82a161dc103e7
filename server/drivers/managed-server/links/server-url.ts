/** Address of an operator's database server, from the URL in the settings. */
import { BlockList, isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { AppError } from '../../../platform/errors.ts';
import { pemText } from './server-tls.ts';

export interface ServerAddress {
  /** The setting, for humans. */
  readonly setting: string;
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  /** The database that its user connects to; empty: the URL names none. */
  readonly database: string;
  readonly tls: boolean;
  /** File with the CA certificate of the server; null: a public CA. */
  readonly caFile: string | null;
}

/** `sslmode` of drivers: only verifying modes are offered. */
const WITH_TLS = ['require', 'verify-ca', 'verify-full'];
const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8);
LOOPBACK.addAddress('::1', 'ipv6');

/** The address in a URL that the settings took. */
export function serverAddress(setting: string, text: string, defaultPort: number): ServerAddress {
  const url = new URL(text);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const mode = url.searchParams.get('sslmode');
  return {
    setting,
    host,
    port: url.port === '' ? defaultPort : Number(url.port),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)),
    tls: mode === null ? !isLoopback(host) : WITH_TLS.includes(mode),
    caFile: url.searchParams.get('sslrootcert'),
  };
}

/** The CA to trust; null: public ones. Throws `engine_unavailable` if the file is unreadable. */
export function caOf({ setting, caFile }: ServerAddress): string | null {
  if (caFile === null) return null;
  try {
    return pemText(caFile);
  } catch (error) {
    throw new AppError('engine_unavailable', `The certificate that sslrootcert names cannot be read`, {
      hint: `correct sslrootcert in ${setting}: the path of a PEM file that Cloudlet may read`,
      cause: error,
    });
  }
}

/** Options for Node's TLS; null: no TLS. */
export function tlsOf(address: ServerAddress): ConnectionOptions | null {
  const { tls, host } = address;
  const ca = caOf(address);
  // An IP address is only verified if named.
  return tls ? { host, ...(ca === null ? {} : { ca }) } : null;
}

function isLoopback(host: string): boolean {
  const version = isIP(host);
  if (version === 0) return host === 'localhost';
  return LOOPBACK.check(host, version === 4 ? 'ipv4' : 'ipv6');
}
