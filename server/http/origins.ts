/**
 * Under which names and from which origins this cloud is called.
 *
 * - A cloud that listens on loopback only trusts that nobody else reaches it, and a page elsewhere can make a
 *   browser do so: its own name is made to lead to 127.0.0.1 (DNS rebinding). Such a request still carries
 *   that name, so `Host` is checked.
 * - Links lead to the addresses that the settings name, else to the host that the request itself names.
 * - Scripts of other sites read responses where CORS (Fetch §3.2) lets them. Never with credentials: a
 *   cookie is of use to this origin alone, others send a key.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, Server } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { AppError } from '../platform/errors.ts';

/** Throws `bad_http` without one `Host`, `misdirected_request` for one that is not ours. */
export type HostCheck = (request: IncomingMessage) => void;

/** `names`: hosts that pass besides `localhost` and addresses. Other than loopback, every host passes. */
export function hostCheck(server: Server, names: readonly string[]): HostCheck {
  const known = new Set(['localhost', ...names.map((name) => name.toLowerCase())]);
  let isLocal = false;
  server.on('listening', () => {
    // A unix socket has a path for an address; only the operator opens it.
    const { address = '' } = server.address() as Partial<AddressInfo>;
    isLocal = isLoopback(address);
  });
  return (request) => {
    const count = hostsIn(request.rawHeaders);
    if (count > 1) throw new AppError('bad_http', 'There is more than one Host header');
    if (count === 0) {
      if (request.httpVersion !== '1.1') return;
      throw new AppError('bad_http', 'The Host header is missing');
    }
    if (isLocal && !isOurs(request.headers.host ?? '', known)) throw misdirected();
  };
}

/** True for an IP address that only this machine reaches. */
export function isLoopback(address: string): boolean {
  return /^(127\.|::1$|::ffff:127\.)/.test(address);
}

/** The host of an address as in CLOUDLET_PUBLIC_URL, without its port; nothing for an empty one. */
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
  return known.has(name) || name.endsWith('.localhost') || isIP(name) === 4;
}

function misdirected(): AppError {
  return new AppError('misdirected_request', 'This cloud listens on loopback and has no such host name', {
    hint:
      'Call it as localhost or by its address. A proxy in front of it needs CLOUDLET_PUBLIC_URL, and ' +
      'CLOUDLET_DATA_URL for the data origin, to name the hosts that users call',
  });
}

/** Of the API and of the data origin, each `http://host:port` without a slash at the end, or empty. */
export interface Addresses {
  readonly apiUrl: string;
  readonly dataUrl: string;
}

/** A name or an address, and a port: nothing that ends the host of a URL, or a rule of a page's policy. */
const HOST = /^(\[[0-9a-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i;

export class OwnAddresses implements Addresses {
  readonly #set: Addresses;
  #listening: Addresses = { apiUrl: '', dataUrl: '' };
  readonly #called = new AsyncLocalStorage<Addresses>();

  /** `set`: by the settings; empty where they name none. */
  constructor(set: Addresses) {
    this.#set = set;
  }

  /** Where the servers listen: for who names no host, such as the operator's commands. */
  listenAt(listening: Addresses): void {
    this.#listening = listening;
  }

  get apiUrl(): string {
    return this.#set.apiUrl || this.#called.getStore()?.apiUrl || this.#listening.apiUrl;
  }

  get dataUrl(): string {
    return this.#set.dataUrl || this.#called.getStore()?.dataUrl || this.#listening.dataUrl;
  }

  /** Answers a request to `origin`: whatever that begins sees the addresses by which we were called. */
  answer<T>(origin: keyof Addresses, request: FastifyRequest, work: () => T): T {
    // What a trusted proxy forwards is in host and protocol already; of others Fastify takes none of it.
    const { host, protocol } = request;
    const [, name] = HOST.exec(host ?? '') ?? [];
    if (name === undefined) return work();
    const called = {
      ...this.#beside(origin, name),
      [origin]: `${protocol === 'https' ? 'https' : 'http'}://${host}`,
    };
    return this.#called.run(called, work);
  }

  /** The other origin has the same host, unless the settings say where the called one is. */
  #beside(origin: keyof Addresses, name: string): Addresses {
    if (this.#set[origin] !== '') return this.#listening;
    const atName = (url: string) => url.replace(/^http:\/\/.*(:\d+)$/, (_, port) => `http://${name}${port}`);
    return { apiUrl: atName(this.#listening.apiUrl), dataUrl: atName(this.#listening.dataUrl) };
  }
}

export interface CorsRules {
  /** As browsers send them, `https://app.example.com`; `*`: all. */
  readonly origins: readonly string[];
  /** Methods that an address has. */
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

/** Browsers ask again after this long. */
const PREFLIGHT_SECONDS = 600;

/** Adds the CORS headers that every response carries; none for a site that is not in `origins`. */
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

/** True for the preflight of a browser whose origin is allowed; the headers are then its whole response. */
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
