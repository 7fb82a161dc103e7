/** Types of settings: text, whole number, choice. */
import { isIP } from 'node:net';
import { parseS3Url } from './s3-address.ts';

export interface Setting<T> {
  readonly env: string;
  readonly help: string;
  readonly fallback: T;
  readonly parse: (text: string) => T;
}

/** An invalid setting. */
export class ConfigError extends Error {}

export function text(
  env: string,
  fallback: string,
  help: string,
  check?: (value: string) => string | undefined,
): Setting<string> {
  const parse = (value: string) => {
    const problem = check?.(value);
    if (problem) throw new ConfigError(problem);
    return value;
  };
  return { env, fallback, help, parse };
}

export function integer(
  env: string,
  fallback: number,
  min: number,
  max: number,
  help: string,
): Setting<number> {
  const parse = (value: string) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max) {
      throw new ConfigError(`must be a whole number from ${min} to ${max}, got "${value}"`);
    }
    return number;
  };
  return { env, fallback, help, parse };
}

/** From 0.1 to 64, with at most three decimals. */
export function ratio(env: string, fallback: number, help: string): Setting<number> {
  const parse = (value: string) => {
    const number = Number(value);
    if (!/^\d{1,2}(?:\.\d{1,3})?$/.test(value) || number < 0.1 || number > 64)
      throw new ConfigError(`must be a number from 0.1 to 64, like 1.5, got "${value}"`);
    return number;
  };
  return { env, fallback, help, parse };
}

export function oneOf<T extends string>(
  env: string,
  fallback: T,
  choices: readonly T[],
  help: string,
): Setting<T> {
  const parse = (value: string) => {
    const choice = choices.find((candidate) => candidate === value);
    if (choice === undefined) throw new ConfigError(`must be one of ${choices.join(', ')}, got "${value}"`);
    return choice;
  };
  return { env, fallback, help: `${help} (${choices.join(', ')})`, parse };
}

export const networks = (value: string) =>
  value === '' || value.split(',').every((entry) => /^[0-9a-fA-F.:]+\/\d{1,3}$/.test(entry))
    ? undefined
    : 'must be networks like 10.0.0.0/8, separated by commas';
export const absolutePath = (value: string) =>
  value === '' || value.startsWith('/') ? undefined : 'must be an absolute path';
/** A wildcard is not an address that clients could connect to. */
export const hostName = (value: string) =>
  /^(?!0\.0\.0\.0$|::$)[0-9A-Za-z.:-]{0,253}$/.test(value)
    ? undefined
    : 'must be a host name or address that clients can connect to, like db.example.com';
export const folders = (value: string) =>
  value === '' || value.split(',').every((entry) => entry.startsWith('/'))
    ? undefined
    : 'must be absolute paths, separated by commas';
/** `first-last`, or `off`. */
export const portRange = (value: string) =>
  value === 'off' || rangeOf(value) !== null ? undefined : PORT_RANGE;
const PORT_RANGE = 'must be two ports from 1 to 65535 like 62100-62999, or off';

/** Both ends included; null: none. */
export function rangeOf(value: string): { readonly first: number; readonly last: number } | null {
  const [, first = 0, last = 0] = (/^(\d{1,5})-(\d{1,5})$/.exec(value) ?? []).map(Number);
  return first >= 1 && first <= last && last <= 65_535 ? { first, last } : null;
}

export const domainName = (value: string) =>
  value === '' ||
  /^(?=.{1,190}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(value)
    ? undefined
    : 'must be a domain in lower case, like apps.example.org';
/** Empty, a domain, or an IP address without brackets. */
export const nameOrAddress = (value: string) =>
  !/^(0\.0\.0\.0|::)$/.test(value) && (isIP(value) !== 0 || domainName(value) === undefined)
    ? undefined
    : 'must be a name in lower case or an IP address, like ports.example.org or 192.0.2.7';
/** An empty address would mean all addresses, an empty path the working directory: probably a mistake. */
export const notEmpty = (value: string) => (value === '' ? 'must not be empty' : undefined);
export const url = (value: string) =>
  value === '' || /^https?:\/\/[^/]+$/.test(value)
    ? undefined
    : 'must be http(s)://host[:port] without a path';
/** A password would show in lists of images. */
export const mirrorUrl = (value: string) =>
  value === '' || value === 'off' || /^https?:\/\/[^/?#@]+(?:\/[^?#@]*)?$/.test(value)
    ? undefined
    : 'must be off, or http(s)://host[:port][/path] without a user name and query';
const isOrigin = (entry: string) => /^https?:/.test(entry) && URL.parse(entry)?.origin === entry;
/** Origins as browsers send them: in lower case, without the default port of the scheme. */
export const origins = (value: string) =>
  value === '' || value.split(',').every((entry) => entry === '*' || isOrigin(entry))
    ? undefined
    : 'must be origins like https://app.example.com, without a path, separated by commas';
export const pool = (value: string) =>
  /^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\/(1[6-9]|2\d|30)$/.test(value)
    ? undefined
    : 'must be an IPv4 network like 127.80.0.0/16, of /16 to /30';
/** The password is not repeated in the message. */
export const serverUrl = (scheme: RegExp, example: string) => (value: string) => {
  const { protocol = '', hostname, username, searchParams } = URL.parse(value) ?? {};
  const mode = searchParams?.get('sslmode') ?? 'disable';
  const isRight = scheme.test(protocol) && hostname && username && SSL_MODES.includes(mode);
  return value === '' || isRight ? undefined : `must be like ${example}`;
};
/** Neither key nor secret is repeated in the message. */
export const s3Url = (value: string) => {
  try {
    if (value !== '') parseS3Url(value, value.includes('@') ? '' : 'of:a-file');
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
};
/** The secret of a URL is not repeated in the message. */
export const pathOrS3Url = (value: string) => (value.startsWith('s3:') ? s3Url(value) : absolutePath(value));
const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'];
export const adminKey = (value: string) =>
  value === '' || /^[\x21-\x7e]{24,512}$/.test(value)
    ? undefined
    : 'must be 24 to 512 visible ASCII characters';
