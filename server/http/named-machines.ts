/**
 * Web servers of machines under host names, `http://web-1.apps.example.org`: requests and
 * WebSockets are forwarded to the published port with that name. A reverse proxy as in RFC 9110
 * §7.6: hop-by-hop fields are removed, and X-Forwarded-For, -Host and -Proto (compare RFC 7239)
 * tell the machine about the client.
 */
import { type ClientRequest, type IncomingMessage, request as requestOf, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ERRORS, isAppError } from '../platform/errors.ts';
import { sourceOf } from '../platform/host/caller-networks.ts';
import type { Upgrades } from './connections/upgrades.ts';
import type { Beside } from './edge.ts';
import type { Door, Exchange, TrustedProxies } from './exchange.ts';
import { endToEnd, framing, hasBody, pairs } from './forwarding/end-to-end.ts';
import { escapeHtml, PAGE_STYLE, pageHeaders } from './page.ts';
import { problemHeaders } from './response.ts';

/**
 * Connects a visitor to the machine's port; null if the port does not answer or no slot is free.
 * Returns a reason if there is no such port.
 */
export type NamedMachine = ((source: string) => Promise<Socket | null>) | 'unknown' | 'stopped';

export interface NamedMachinesDeps {
  /** `apps.example.org`; empty: no machine has a name. */
  readonly domain: string;
  readonly find: (hostname: string) => Promise<NamedMachine>;
  readonly proxies: TrustedProxies;
  readonly door: Door;
}

interface Visit {
  readonly exchange: Exchange;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Maximum time for a machine to respond, ms. */
const SILENT_MS = 300_000;
/** Maximum 1xx responses before the final one, because each costs processor time. */
const MAX_INTERIM = 20;
const ROUTE = 'namedMachine';
/** RFC 9112 §4: visible characters, spaces and tabs, as bytes. */
const NOT_OF_A_REASON = /[^\t\x20-\x7e\x80-\xff]/;

export class NamedMachines implements Beside, Upgrades {
  readonly #deps: NamedMachinesDeps;
  readonly #ending: string;

  constructor(deps: NamedMachinesDeps) {
    this.#deps = deps;
    this.#ending = `.${deps.domain.toLowerCase()}`;
  }

  takes({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
    return this.#deps.domain !== '' && nameIn(headers.host).endsWith(this.#ending);
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const { door } = this.#deps;
    const visit = { exchange: door.open(request, response, ROUTE), request, response };
    this.#pass(visit).catch((error) => refuseFor(visit, error));
  }

  /** Forwards WebSockets and other protocols that a machine's server switches to. */
  upgrade(request: IncomingMessage, { client, head }: { client: Duplex; head: Buffer }): void {
    client.on('error', () => undefined);
    // A proxy in front of us may reuse the connection for another client unless the machine has
    // switched protocols. So only a machine that has switched gets the raw connection.
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(client as Socket);
    response.once('finish', () => client.end());
    const visit = { exchange: this.#deps.door.open(request, response, ROUTE), request, response };
    this.#switch(visit, { client, head }).catch((error) => refuseFor(visit, error));
  }

  /** Throws AppError: the refusals of the door, and `rate_limited` for clients that guess names. */
  async #find({ exchange, request }: Visit): Promise<NamedMachine> {
    const { door, find } = this.#deps;
    door.admit(exchange);
    const label = nameIn(request.headers.host).slice(0, -this.#ending.length);
    const found = label.includes('.') ? 'unknown' : await find(label);
    if (found === 'unknown') door.limit(exchange);
    return found;
  }

  async #pass(visit: Visit): Promise<void> {
    const { request, response } = visit;
    const machine = await this.#find(visit);
    if (request.headers.expect !== undefined && typeof machine === 'function') response.writeContinue();
    if (machine === 'unknown') return refuse(visit, 404, UNKNOWN);
    if (machine === 'stopped') return refuse(visit, 503, STOPPED);
    const socket = await machine(sourceOf(visit.exchange.address));
    if (socket === null) return refuse(visit, 502, UNREACHABLE);
    if (response.destroyed) {
      socket.destroy();
      return;
    }
    const upstream = this.#forward(visit, socket, [...framing(request), 'Connection', 'close']);
    upstream.on('upgrade', (_, guest) => {
      guest.destroy();
      refuse(visit, 502, UNREACHABLE);
    });
    request.pipe(upstream);
  }

  async #switch(visit: Visit, { client, head }: { client: Duplex; head: Buffer }): Promise<void> {
    const { request } = visit;
    if (hasBody(request)) return refuse(visit, 400, NO_BODY);
    const machine = await this.#find(visit);
    if (machine === 'unknown') return refuse(visit, 404, UNKNOWN);
    const socket = machine === 'stopped' ? null : await machine(sourceOf(visit.exchange.address));
    if (socket === null) return refuse(visit, 503, machine === 'stopped' ? STOPPED : UNREACHABLE);
    if (client.destroyed) {
      socket.destroy();
      return;
    }
    const upgrade = ['Upgrade', request.headers.upgrade ?? '', 'Connection', 'Upgrade'];
    const upstream = this.#forward(visit, socket, upgrade);
    upstream.on('upgrade', (answer, guest, guestHead) => {
      if (client.destroyed || visit.response.headersSent) {
        guest.destroy();
        return;
      }
      visit.response.detachSocket(client as Socket);
      this.#deps.door.record(visit.exchange, 101);
      const fields = pairs(answer.rawHeaders).map((pair) => pair.join(': '));
      client.write(`HTTP/1.1 101 Switching Protocols\r\n${fields.join('\r\n')}\r\n\r\n`, 'latin1');
      client.write(guestHead);
      guest.setTimeout(0).write(head);
      const cut = () => {
        client.destroy();
        guest.destroy();
      };
      for (const side of [client, guest]) side.once('error', cut).once('close', cut);
      guest.pipe(client).pipe(guest);
      if (client.destroyed) cut();
    });
    upstream.end();
  }

  /** Forwards the request to the machine and its response to the client; `fields`: hop-by-hop headers. */
  #forward(visit: Visit, socket: Socket, fields: readonly string[]): ClientRequest {
    const { request, response } = visit;
    const upstream = requestOf({
      createConnection: () => socket,
      method: request.method ?? 'GET',
      path: request.url ?? '/',
      headers: [...this.#headersOf(request), ...fields],
      setHost: false,
      timeout: SILENT_MS,
    });
    upstream.on('timeout', () => upstream.destroy());
    upstream.on('error', () => {
      if (response.headersSent) response.destroy();
      else refuse(visit, 502, UNREACHABLE);
    });
    let interim = 0;
    upstream.on('information', () => {
      if (++interim > MAX_INTERIM) upstream.destroy(new Error('too many interim responses'));
    });
    upstream.on('response', (answer) => {
      answer.on('error', () => response.destroy());
      answer.once('aborted', () => response.destroy());
      const { statusCode = 0, statusMessage = '', rawHeaders } = answer;
      // Node's parser accepts some values that its writer refuses.
      if (statusCode < 200 || NOT_OF_A_REASON.test(statusMessage)) {
        upstream.destroy();
        refuse(visit, 502, UNREACHABLE);
        return;
      }
      response.writeHead(statusCode, statusMessage, endToEnd(rawHeaders));
      answer.pipe(response);
    });
    response.once('close', () => upstream.destroy());
    return upstream;
  }

  #headersOf(request: IncomingMessage): string[] {
    const { proxies } = this.#deps;
    return [
      ...endToEnd(request.rawHeaders),
      ...['X-Forwarded-For', proxies.addressOf(request)],
      ...['X-Forwarded-Host', request.headers.host ?? ''],
      ...['X-Forwarded-Proto', proxies.isSecure(request) ? 'https' : 'http'],
    ];
  }
}

/** `web-1.apps.example.org` of `Web-1.apps.example.org.:8080`. */
function nameIn(host = ''): string {
  return host.replace(/\.?(?::\d*)?$/, '').toLowerCase();
}

interface Words {
  readonly title: string;
  readonly text: string;
  /** Value of Retry-After, seconds. */
  readonly retrySeconds?: string | undefined;
}

const UNKNOWN = { title: 'No such machine', text: 'No virtual machine has this name.' };
const UNREACHABLE = {
  title: 'No answer',
  text: 'The virtual machine is running, but its web server does not answer.',
};
const NO_BODY = { title: 'Bad request', text: 'A protocol upgrade request must not have a body.' };
const STOPPED = { title: 'Not running', text: 'The virtual machine with this name is not running.' };

/** Refuses with the error's message; for any other failure, says that the machine does not respond. */
function refuseFor(visit: Visit, error: unknown): void {
  if (!isAppError(error)) {
    refuse(visit, 502, UNREACHABLE);
    return;
  }
  const { http, title } = ERRORS[error.code];
  const text = `${error.message}.`;
  refuse(visit, http, { title, text, retrySeconds: problemHeaders(error)['retry-after'] });
}

function refuse(
  { exchange, request, response }: Visit,
  status: number,
  { title, text, retrySeconds = status === 503 ? '10' : undefined }: Words,
): void {
  if (response.headersSent || response.destroyed) return;
  request.resume();
  const isPage = /\btext\/html\b/.test(request.headers.accept ?? '');
  const body = isPage ? pageOf({ title, text }) : `${text}\n`;
  response.writeHead(status, {
    ...(isPage ? pageHeaders(body) : {}),
    'content-type': `text/${isPage ? 'html' : 'plain'}; charset=utf-8`,
    'cache-control': 'no-store',
    ...(retrySeconds !== undefined && { 'retry-after': retrySeconds }),
    ...exchange.responseHeaders,
    connection: 'close',
  });
  response.end(request.method === 'HEAD' ? '' : body);
}

function pageOf({ title, text }: Words): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title>
<style>${PAGE_STYLE}</style><main><h1>${title}</h1><p>${escapeHtml(text)}</p></main></html>`;
}
