/**
 * Host names and origins of this cloud.
 *
 * - A cloud that listens on loopback only must not be reachable for others, but a web page can make a
 *   browser call it by resolving its own name to 127.0.0.1 (DNS rebinding). Such a request still carries that
 *   name, so `Host` is checked.
 * - Links use the addresses from the settings, else the host of the request.
 * - Scripts of other origins read responses if CORS (Fetch §3.2) allows them. Never with credentials: cookies
 *   are for this origin only, others send a key.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, Server } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { AppError } from '../platform/errors.ts';

/** Throws `bad_http` unless there is exactly one `Host`, `misdirected_request` for a foreign one. */
export type HostCheck = (request: IncomingMessage) => void;

/**
 * `names`: allowed hosts besides `localhost` and addresses; `.example.org` allows every name below it.
 * Unless it listens on loopback only, every host is allowed.
 */
export function hostCheck(server: Server, names: readonly string[]): HostCheck {
  const known = new Set(['localhost', ...names.map((name) => name.toLowerCase())]);
  let isLocal = false;
  server.on('listening', () => {
    // A unix socket has a path instead of an address; only the operator opens it.
    const { address = '' } = server.address() as Partial<AddressInfo>;
    isLocal = isLoopback(address);
  });
  return (request) => {
    const count = hostsIn(request.rawHeaders);
    if (count > 1) throw new AppError('bad_http', 'The request has more than one Host header');
    if (count === 0) {
      if (request.httpVersion !== '1.1') return;
      throw new AppError('bad_http', 'The Host header is missing');
    }
    if (isLocal && !isOurs(request.headers.host ?? '', known)) throw misdirected();
  };
}

/** True for a loopback IP address. */
export function isLoopback(address: string): boolean {
  return /^(127\.|::1$|::ffff:127\.)/.test(address);
}

/** The host names of URLs such as CLOUDLET_PUBLIC_URL, without ports; empty URLs are skipped. */
export function hostsOf(...urls: readonly string[]): string[] {
  return urls.filter((url) => url !== '').map((url) => new URL(url).hostname);
}

function hostsIn(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') count++;
  }
  return count;
}

function isOurs(host: string, known: ReadonlySet<string>): boolean {
  const [, bracketed, plain = ''] = /^(?:\[([^\]]*)\]|([^:[\]]+?)\.?)(?::\d*)?$/.exec(host) ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6;
  const name = plain.toLowerCase();
  const isBelow = () => [...known].some((each) => each.startsWith('.') && name.endsWith(each));
  return known.has(name) || name.endsWith('.localhost') || isIP(name) === 4 || isBelow();
}

function misdirected(): AppError {
  return new AppError(
    'misdirected_request',
    'This cloud listens on loopback and does not serve this host name',
    {
      hint:
        'Use localhost or its address. For a proxy in front of it, set CLOUDLET_PUBLIC_URL, and ' +
        'CLOUDLET_DATA_URL for the data origin, to the public host names',
    },
  );
}

/** URLs of the API and of the data origin, each `http://host:port` without a slash at the end, or empty. */
export interface Addresses {
  readonly apiUrl: string;
  readonly dataUrl: string;
}

/**
 * A name or an address, and a port: without characters that end the host of a URL or a rule of a
 * content security policy.
 */
const HOST = /^(\[[0-9a-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i;

/** The host and protocol that a request used. */
type Called =
  | Pick<FastifyRequest, 'host' | 'protocol'>
  | { readonly host: string; readonly isSecure: boolean };

export class OwnAddresses implements Addresses {
  readonly #set: Addresses;
  #listening: Addresses = { apiUrl: '', dataUrl: '' };
  readonly #called = new AsyncLocalStorage<Addresses>();

  /** `set`: from the settings; empty if not set. */
  constructor(set: Addresses) {
    this.#set = set;
  }

  /** The listening addresses: for callers without a host, such as the operator's commands. */
  listenAt(listening: Addresses): void {
    this.#listening = listening;
  }

  /** URL of this node on this host, not the public URL; empty before listenAt(). */
  get listening(): Addresses {
    return this.#listening;
  }

  get apiUrl(): string {
    return this.#set.apiUrl || this.#called.getStore()?.apiUrl || this.#listening.apiUrl;
  }

  get dataUrl(): string {
    return this.#set.dataUrl || this.#called.getStore()?.dataUrl || this.#listening.dataUrl;
  }

  /** Handles a request to `origin`: code called by `work` sees the URLs that the caller used. */
  answer<T>(origin: keyof Addresses, request: Called, work: () => T): T {
    // Host and protocol respect headers of a trusted proxy; Fastify ignores those of other clients.
    const { host } = request;
    const isSecure = 'protocol' in request ? request.protocol === 'https' : request.isSecure;
    const [, name] = HOST.exec(host ?? '') ?? [];
    if (name === undefined) return work();
    const called = {
      ...this.#beside(origin, name),
      [origin]: `${isSecure ? 'https' : 'http'}://${host}`,
    };
    return this.#called.run(called, work);
  }

  /** The other origin has the same host, unless the settings define the called origin. */
  #beside(origin: keyof Addresses, name: string): Addresses {
    if (this.#set[origin] !== '') return this.#listening;
    const atName = (url: string) => url.replace(/^http:\/\/.*(:\d+)$/, (_, port) => `http://${name}${port}`);
    return { apiUrl: atName(this.#listening.apiUrl), dataUrl: atName(this.#listening.dataUrl) };
  }
}

/**
 * Host names that the caller may have used for the cloud. A proxy may send a different name than
 * the browser used, whose page contains the browser's.
 */
export function calledHosts({ hostname, headers }: Pick<FastifyRequest, 'hostname' | 'headers'>): string[] {
  const { origin = '' } = headers;
  const ofPage = URL.canParse(origin) ? [new URL(origin).hostname] : [];
  return [hostname, ...ofPage].map((host) => host.toLowerCase());
}

export interface CorsRules {
  /** Origins as browsers send them, `https://app.example.com`; `*`: all. */
  readonly origins: readonly string[];
  /** The methods that a path supports. */
  readonly methodsAt: (url: string) => readonly string[];
}

const REQUEST_HEADERS = [
  ...['X-API-Key', 'Authorization', 'Content-Type', 'Idempotency-Key', 'Prefer', 'Accept'],
  ...['Range', 'If-Range', 'If-Match', 'If-None-Match', 'If-Modified-Since', 'If-Unmodified-Since'],
].join(', ');

const RESPONSE_HEADERS = [
  ...['ETag', 'Link', 'Location', 'Content-Disposition', 'Content-Range', 'Accept-Ranges', 'Content-Length'],
  ...['Retry-After', 'RateLimit', 'RateLimit-Policy', 'X-RateLimit-Limit', 'X-RateLimit-Remaining'],
  ...['X-RateLimit-Reset', 'X-Request-Id', 'Idempotent-Replayed', 'Preference-Applied', 'Warning'],
].join(', ');

/** Browsers cache a preflight for this long. */
const PREFLIGHT_SECONDS = 600;

/** Adds the CORS headers of every response; none for an origin that is not in `origins`. */
export function allowOrigin(
  { origins }: CorsRules,
  request: IncomingMessage,
  responseHeaders: Record<string, string>,
): void {
  const isOpen = origins.includes('*');
  if (!isOpen) varyOn(responseHeaders, 'Origin');
  const { origin } = request.headers;
  if (!isOpen && (origin === undefined || !origins.includes(origin))) return;
  responseHeaders['access-control-allow-origin'] = isOpen ? '*' : String(origin);
  responseHeaders['access-control-expose-headers'] = RESPONSE_HEADERS;
}

/** True for a preflight from an allowed browser origin; the headers are then its whole response. */
export function answersPreflight(
  { methodsAt }: CorsRules,
  { method, headers, url = '' }: IncomingMessage,
  responseHeaders: Record<string, string>,
): boolean {
  const isAsked = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
  if (!isAsked || responseHeaders['access-control-allow-origin'] === undefined) return false;
  responseHeaders['access-control-allow-methods'] = methodsAt(url).join(', ');
  responseHeaders['access-control-allow-headers'] = REQUEST_HEADERS;
  responseHeaders['access-control-max-age'] = String(PREFLIGHT_SECONDS);
  return true;
}

/** Adds a name to the Vary header. */
export function varyOn(responseHeaders: Record<string, string>, name: string): void {
  responseHeaders.vary = responseHeaders.vary === undefined ? name : `${responseHeaders.vary}, ${name}`;
}
