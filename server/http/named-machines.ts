/**
 * Web servers of machines under host names, `http://web-1.apps.example.org`: requests and WebSockets go to
 * the published port that has the name. A reverse proxy as in RFC 9110 §7.6: fields of one connection stay
 * here, and X-Forwarded-For, -Host and -Proto (RFC 7239 describes their purpose) tell the machine who asks.
 */
import { type IncomingMessage, request as requestOf, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../platform/clock.ts';
import type { Meters } from '../platform/prometheus.ts';
import type { TrustedProxies } from './client-address.ts';
import type { Beside } from './edge.ts';
import { escapeHtml, PAGE_STYLE, pageHeaders } from './page.ts';
import type { Upgrades } from './upgrades.ts';

/** Connects to the machine's port, null if nothing answers there; or why there is nothing to connect to. */
export type NamedMachine = (() => Promise<Socket | null>) | 'unknown' | 'stopped';

export interface NamedMachinesDeps {
  /** `apps.example.org`; empty: no machine has a name. */
  readonly domain: string;
  readonly find: (hostname: string) => Promise<NamedMachine>;
  readonly proxies: TrustedProxies;
  readonly clock: Clock;
  readonly meters: Pick<Meters, 'observeRequest'>;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** A machine may think about a request for so long, ms. */
const SILENT_MS = 300_000;
const ROUTE = 'namedMachine';

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
    const began = this.#deps.clock.monotonic();
    response.once('close', () => {
      const seconds = (this.#deps.clock.monotonic() - began) / 1000;
      this.#deps.meters.observeRequest(ROUTE, response.headersSent ? response.statusCode : 499, seconds);
    });
    this.#pass({ request, response }).catch(() => refuse({ request, response }, 502, UNREACHABLE));
  }

  /** Passes WebSockets and other protocols that a machine's server switches to. */
  upgrade(request: IncomingMessage, { client, head }: { client: Duplex; head: Buffer }): void {
    client.on('error', () => undefined);
    this.#switch(request, { client, head }).catch(() => client.destroy());
  }

  async #find({ headers }: IncomingMessage): Promise<NamedMachine> {
    const label = nameIn(headers.host).slice(0, -this.#ending.length);
    return label.includes('.') ? 'unknown' : this.#deps.find(label);
  }

  async #pass(exchange: Exchange): Promise<void> {
    const { request, response } = exchange;
    if (request.headers.expect !== undefined) response.writeContinue();
    const machine = await this.#find(request);
    if (machine === 'unknown') return refuse(exchange, 404, UNKNOWN);
    if (machine === 'stopped') return refuse(exchange, 503, STOPPED);
    const socket = await machine();
    if (socket === null) return refuse(exchange, 502, UNREACHABLE);
    if (response.destroyed) {
      socket.destroy();
      return;
    }
    const upstream = requestOf({
      createConnection: () => socket,
      method: request.method ?? 'GET',
      path: request.url ?? '/',
      headers: [...this.#headersOf(request), ...framing(request), 'Connection', 'close'],
      setHost: false,
      timeout: SILENT_MS,
    });
    upstream.on('timeout', () => upstream.destroy());
    upstream.on('error', () => {
      if (response.headersSent) response.destroy();
      else refuse(exchange, 502, UNREACHABLE);
    });
    upstream.on('response', (answer) => {
      answer.on('error', () => response.destroy());
      answer.once('aborted', () => response.destroy());
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, endToEnd(answer.rawHeaders));
      answer.pipe(response);
    });
    response.once('close', () => upstream.destroy());
    request.pipe(upstream);
  }

  async #switch(request: IncomingMessage, { client, head }: { client: Duplex; head: Buffer }): Promise<void> {
    const machine = await this.#find(request);
    const socket = typeof machine === 'function' ? await machine() : null;
    if (socket === null) {
      const status = machine === 'unknown' ? 404 : 503;
      client.end(
        `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
      );
      return;
    }
    const upgrade = ['Upgrade', request.headers.upgrade ?? '', 'Connection', 'Upgrade'];
    const fields = pairs([...this.#headersOf(request), ...upgrade]);
    const lines = [`${request.method} ${request.url} HTTP/1.1`, ...fields.map((pair) => pair.join(': '))];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
    socket.write(head);
    const cut = () => {
      client.destroy();
      socket.destroy();
    };
    for (const side of [client, socket]) side.once('error', cut).once('close', cut);
    socket.pipe(client).pipe(socket);
    if (client.destroyed) cut();
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

/** Fields of one connection (RFC 9110 §7.6.1), and what only this proxy may say of the client. */
const OWN = new Set([
  ...[
    'connection',
    'keep-alive',
    'proxy-connection',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
    'expect',
  ],
  ...['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'forwarded'],
]);

function endToEnd(raw: readonly string[]): string[] {
  const fields = pairs(raw);
  const named = fields
    .filter(([name]) => name.toLowerCase() === 'connection')
    .flatMap(([, value]) => value.toLowerCase().split(/[\s,]+/));
  return fields
    .filter(([name]) => !OWN.has(name.toLowerCase()) && !named.includes(name.toLowerCase()))
    .flat();
}

/** Node's client would frame the body of a DELETE by nothing. */
function framing({ headers }: IncomingMessage): string[] {
  return headers['transfer-encoding'] === undefined ? [] : ['Transfer-Encoding', 'chunked'];
}

function pairs(raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i] ?? '', raw[2 * i + 1] ?? '']);
}

interface Words {
  readonly title: string;
  readonly text: string;
}

const UNKNOWN = { title: 'No such machine', text: 'No virtual machine has this name.' };
const UNREACHABLE = {
  title: 'No answer',
  text: 'The virtual machine is running, but its web server does not answer.',
};
const STOPPED = { title: 'Not running', text: 'The virtual machine with this name is not running.' };

function refuse({ request, response }: Exchange, status: number, { title, text }: Words): void {
  if (response.headersSent || response.destroyed) return;
  request.resume();
  const isPage = /\btext\/html\b/.test(request.headers.accept ?? '');
  const body = isPage ? pageOf({ title, text }) : `${text}\n`;
  response.writeHead(status, {
    ...(isPage ? pageHeaders(body) : {}),
    'content-type': `text/${isPage ? 'html' : 'plain'}; charset=utf-8`,
    'cache-control': 'no-store',
    ...(status === 503 ? { 'retry-after': '10' } : {}),
    connection: 'close',
  });
  response.end(request.method === 'HEAD' ? '' : body);
}

function pageOf({ title, text }: Words): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title>
<style>${PAGE_STYLE}</style><main><h1>${title}</h1><p>${escapeHtml(text)}</p></main></html>`;
}
