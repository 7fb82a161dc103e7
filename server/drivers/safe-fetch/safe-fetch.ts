/**
 * HTTP to untrusted URLs. A name is resolved once for each request, its addresses are checked
 * against the rules, and the socket connects to one of the checked addresses: no second look-up
 * could return another. Every redirect is checked in the same way.
 */
import type { LookupAddress } from 'node:dns';
import * as http from 'node:http';
import * as https from 'node:https';
import { type BlockList, isIP, type LookupFunction } from 'node:net';
import type { Clock } from '../../platform/clock.ts';
import {
  type Outbound,
  OutboundRefused,
  type OutboundRequest,
  type OutboundResponse,
} from '../../platform/outbound.ts';
import { HostNames } from './host-names.ts';
import { isIn, mayReach, networkList } from './networks.ts';

export interface SafeFetchDeps {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Networks (`10.0.0.0/8`) that may be reached although they are not public. */
  readonly allowed: readonly string[];
  /** Without a byte for this long the request is given up, ms. */
  readonly stallMs?: number;
  /**
   * A response that takes this long to begin, or brings less than `slowBytes` in this time, is
   * aborted, ms.
   */
  readonly slowMs?: number;
  readonly slowBytes?: number;
}

const STALL_MS = 30_000;
/** Maximum wait for the address of a name that is only checked, ms. */
const CHECK_MS = 2000;
const SLOW_MS = 60_000;
/** 1 KiB/s. */
const SLOW_BYTES = 60 * 1024;
const MAX_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MAX_URL_LENGTH = 4096;
const MAX_HEADER_BYTES = 32 * 1024;
/** Responses 1xx before the final one: each costs processor time here, and the sender little. */
const MAX_INTERIM = 20;

export class SafeFetch implements Outbound {
  readonly #allowed: BlockList;
  readonly #stallMs: number;
  readonly #pace: Pace;
  readonly #names = new HostNames();

  /** Throws an Error when one of `allowed` is not a network. */
  constructor(deps: SafeFetchDeps) {
    this.#allowed = networkList(deps.allowed);
    this.#stallMs = deps.stallMs ?? STALL_MS;
    const { clock, slowMs = SLOW_MS, slowBytes = SLOW_BYTES } = deps;
    this.#pace = { clock, slowMs, slowBytes };
  }

  async assertAllowed(text: string): Promise<void> {
    const { hostname } = checkedUrl(text);
    const host = this.#hostOf(hostname);
    if (isIP(host) !== 0) return;
    const { promise: late, resolve: giveUp } = Promise.withResolvers<void>();
    const timer = setTimeout(giveUp, CHECK_MS);
    const found = new Promise<void>((resolve, reject) => {
      this.#lookup(host, {}, (error) => (error instanceof OutboundRefused ? reject(error) : resolve()));
    });
    await Promise.race([found, late]).finally(() => clearTimeout(timer));
  }

  async fetch(request: OutboundRequest): Promise<OutboundResponse> {
    const limit = AbortSignal.timeout(request.totalMs);
    const signal = request.signal ? AbortSignal.any([request.signal, limit]) : limit;
    try {
      const response = await this.#follow(request, signal);
      const length = announcedLength(response);
      if (length !== null && length > request.maxBytes) {
        response.destroy();
        throw tooLarge(request.maxBytes);
      }
      const pieces = atPace(response, this.#pace);
      const bytes = readResponse(pieces, { response, request, signal });
      const retryAfter = response.headers['retry-after'] ?? null;
      const contentRange = response.headers['content-range'] ?? null;
      return { status: response.statusCode ?? 0, retryAfter, contentRange, length, bytes };
    } catch (error) {
      throw worded(error, request, signal);
    }
  }

  async #follow(request: OutboundRequest, signal: AbortSignal): Promise<http.IncomingMessage> {
    let url = checkedUrl(request.url);
    for (let redirects = 0; ; redirects++) {
      if (request.mayAsk?.(url) === false) throw notNamed(url);
      const response = await this.#send(url, request, signal);
      const { location } = response.headers;
      const isRedirect = REDIRECTS.has(response.statusCode ?? 0) && location !== undefined;
      if (!isRedirect || (request.method ?? 'GET') !== 'GET') return response;
      response.destroy();
      if (redirects === MAX_REDIRECTS) {
        throw new OutboundRefused('failed', `more than ${MAX_REDIRECTS} redirects`);
      }
      const next = checkedUrl(location, url);
      if (url.protocol === 'https:' && next.protocol === 'http:') {
        throw new OutboundRefused('forbidden', 'redirect from https to http');
      }
      url = next;
    }
  }

  #send(url: URL, request: OutboundRequest, signal: AbortSignal): Promise<http.IncomingMessage> {
    const isInside = url.origin === request.insideOrigin;
    const host = isInside ? plainHost(url.hostname) : this.#hostOf(url.hostname);
    const { protocol } = url;
    return new Promise((resolve, reject) => {
      const sent = (protocol === 'https:' ? https : http).request({
        protocol,
        host,
        port: url.port,
        path: url.pathname + url.search,
        method: request.method ?? 'GET',
        headers: {
          'user-agent': 'cloudlet',
          accept: '*/*',
          'accept-encoding': 'identity',
          ...request.headers,
          host: url.host,
        },
        lookup: isInside ? this.#lookupAny : this.#lookup,
        // A new connection: never one that someone else opened.
        agent: false,
        maxHeaderSize: MAX_HEADER_BYTES,
        timeout: this.#stallMs,
        signal,
      });
      sent.on('timeout', () => {
        const seconds = Math.ceil(this.#stallMs / 1000);
        sent.destroy(new OutboundRefused('failed', `no data for ${seconds} s`));
      });
      // In any case: a connection from an address to itself stays on this host.
      sent.on('socket', (socket) =>
        socket.on('connect', () => {
          const { localAddress, remoteAddress = '' } = socket;
          const isSelf = localAddress === remoteAddress && !isInside && !isIn(this.#allowed, remoteAddress);
          if (isSelf) sent.destroy(forbidden(url.hostname));
        }),
      );
      let interim = 0;
      sent.on('information', () => {
        if (++interim > MAX_INTERIM)
          sent.destroy(new OutboundRefused('failed', 'too many interim responses'));
      });
      // A response that trickles in never triggers the idle timeout.
      const patience = setTimeout(() => sent.destroy(tooSlow(this.#pace)), this.#pace.slowMs);
      sent.on('close', () => clearTimeout(patience));
      sent.on('response', () => clearTimeout(patience));
      sent.on('error', reject).on('response', resolve);
      sent.end(request.body);
    });
  }

  /** Sockets look up only names, not addresses. */
  #hostOf(hostname: string): string {
    const host = plainHost(hostname);
    if (isIP(host) !== 0 && !mayReach(host, this.#allowed)) throw forbidden(hostname);
    return host;
  }

  /** Resolves a name to its addresses for which `isFine` holds. */
  #lookupOf(isFine: (address: string) => boolean): LookupFunction {
    return (name, options, callback) => {
      const take = (found: LookupAddress[]) => {
        const fine = found.filter(({ address }) => isFine(address));
        const [first] = fine;
        if (first === undefined) return callback(forbidden(name), '');
        if (options.all) callback(null, fine);
        else callback(null, first.address, first.family);
      };
      this.#names.find(name).then(take, (error) => callback(error, ''));
    };
  }

  readonly #lookup = this.#lookupOf((address) => mayReach(address, this.#allowed));
  readonly #lookupAny = this.#lookupOf(() => true);
}

/** Without the brackets of IPv6. */
function plainHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** Throws OutboundRefused unless it is http(s) without credentials. */
function checkedUrl(text: string, base?: URL): URL {
  const url = text.length <= MAX_URL_LENGTH ? URL.parse(text, base?.href) : null;
  if (url === null) throw new OutboundRefused('invalid', 'not a URL');
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new OutboundRefused('invalid', 'must begin with http:// or https://');
  }
  if (url.username !== '' || url.password !== '') {
    throw new OutboundRefused('invalid', 'must not contain a user name or password');
  }
  return url;
}

function announcedLength({ headers }: http.IncomingMessage): number | null {
  const text = headers['content-length'];
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

interface Pace {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly slowMs: number;
  readonly slowBytes: number;
}

/** Only time in which we wait for the other side counts: our own disk may be slow. */
async function* atPace(pieces: AsyncIterable<Uint8Array>, pace: Pace): AsyncGenerator<Uint8Array> {
  const { clock, slowMs, slowBytes } = pace;
  let [waitedMs, bytes] = [0, 0];
  let since = clock.monotonic();
  for await (const piece of pieces) {
    waitedMs += clock.monotonic() - since;
    bytes += piece.length;
    if (waitedMs >= slowMs) {
      if (bytes < slowBytes) throw tooSlow(pace);
      [waitedMs, bytes] = [0, 0];
    }
    yield piece;
    since = clock.monotonic();
  }
}

interface Reading {
  readonly response: http.IncomingMessage;
  readonly request: OutboundRequest;
  readonly signal: AbortSignal;
}

async function* readResponse(
  pieces: AsyncIterable<Uint8Array>,
  { response, request, signal }: Reading,
): AsyncGenerator<Uint8Array> {
  let total = 0;
  try {
    for await (const piece of pieces) {
      total += piece.length;
      if (total > request.maxBytes) throw tooLarge(request.maxBytes);
      yield piece;
    }
  } catch (error) {
    throw worded(error, request, signal);
  } finally {
    response.destroy();
  }
}

function forbidden(host: string): OutboundRefused {
  return new OutboundRefused('forbidden', `${host} is not a public Internet address outside this host`);
}

function notNamed(url: URL): OutboundRefused {
  return new OutboundRefused('forbidden', `${url.origin} is not among the addresses of this source`);
}

function tooLarge(maxBytes: number): OutboundRefused {
  return new OutboundRefused('failed', `the response is larger than ${maxBytes} bytes`);
}

function tooSlow({ slowMs, slowBytes }: Pace): OutboundRefused {
  const wanted = `${slowBytes} bytes in ${Math.ceil(slowMs / 1000)} s`;
  return new OutboundRefused('failed', `the response is too slow: less than ${wanted}`);
}

function worded(error: unknown, request: OutboundRequest, signal: AbortSignal): unknown {
  if (error instanceof OutboundRefused) return error;
  if (request.signal?.aborted) return request.signal.reason;
  if (signal.aborted) return new OutboundRefused('failed', 'the request timed out', error);
  const { code } = error as NodeJS.ErrnoException;
  return new OutboundRefused('failed', `the connection failed (${code ?? 'unknown'})`, error);
}
