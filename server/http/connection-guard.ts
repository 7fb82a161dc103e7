/**
 * Limits the cost of connections: their number, the minimum speed of bodies and responses, and a problem
 * document for requests that Node's parser rejects.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { AppError, type ErrorCode } from '../platform/errors.ts';
import { newId } from '../platform/ids.ts';
import { ConnectionSlots, type SlotDeps } from './connection-slots.ts';
import { PROBLEM_TYPE, problemHeaders, toProblem } from './response.ts';

export interface GuardDeps extends SlotDeps {
  /** A transfer under MIN_BYTES_PER_SECOND for this long is cut. */
  readonly slowSeconds: number;
  readonly log: Pick<Logger, 'warn'>;
}

const MIN_BYTES_PER_SECOND = 1024;
const CHECK_MS = 1000;
/** Time for a client to read the reason of a refusal. */
const REFUSAL_MS = 5000;
/** Maximum concurrent refusals with a reason; further connections are closed without one. */
const MAX_REFUSING = 200;

/** The latest request of a connection, and its progress at the last check. */
interface Transfer {
  request: IncomingMessage | undefined;
  response: ServerResponse | undefined;
  seen: IncomingMessage | undefined;
  bytes: number;
  since: number;
}

export class ConnectionGuard {
  readonly #deps: GuardDeps;
  readonly #slots: ConnectionSlots;
  readonly #transfers = new Map<Socket, Transfer>();
  /** Refused connections: later data on them must have no effect. */
  readonly #turnedAway = new WeakSet<Socket>();
  #refusing = 0;
  #hasWarnedOfTls = false;
  readonly #timer: NodeJS.Timeout;

  constructor(deps: GuardDeps) {
    this.#deps = deps;
    this.#slots = new ConnectionSlots(deps, {
      close: (socket, { reason, wasUsed }) => {
        // A client with an earlier response would take a refusal for the response to its next request.
        if (wasUsed || this.#isReceiving(socket)) socket.destroy();
        else this.#turnAway(socket, reason);
      },
      isReceiving: (socket) => this.#isReceiving(socket),
    });
    this.#timer = setInterval(() => this.#cutSlow(), CHECK_MS).unref();
  }

  get connections(): number {
    return this.#slots.size;
  }

  /** True for a connection that only serves routes with RouteSpec.usesReserve. */
  isReserve(socket: Socket): boolean {
    return this.#slots.isReserve(socket) || this.#turnedAway.has(socket);
  }

  /** Attaches the guard to a server. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      this.#transfers.set(socket, {
        request: undefined,
        response: undefined,
        seen: undefined,
        bytes: 0,
        since: 0,
      });
      socket.on('close', () => {
        this.#transfers.delete(socket);
        this.#slots.leave(socket);
      });
      const slot = this.#slots.enter(socket);
      if (slot.kind === 'none') this.#turnAway(socket, slot.reason);
    });
    // Without a listener of ours Node treats the request as an ordinary one, and must go on doing so.
    if (server.listenerCount('upgrade') > 0) {
      server.prependListener('upgrade', (_request, socket) => this.#slots.busy(socket as Socket));
    }
    server.on('request', (request, response) => {
      this.#slots.busy(request.socket);
      response.once('close', () => this.#slots.done(request.socket));
      const transfer = this.#transfers.get(request.socket);
      if (transfer === undefined) return;
      transfer.request = request;
      transfer.response = response;
    });
    // Node alone would send 417, without a body; an expectation may be ignored (RFC 9110 §10.1.1).
    server.on('checkExpectation', (request, response) => server.emit('request', request, response));
    // Fastify's own listener would run first, and does not send a problem document.
    server.removeAllListeners('clientError');
    server.on('clientError', (error, socket) => this.#refuse(error, socket));
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #isReceiving(socket: Socket): boolean {
    const { request, response } = this.#transfers.get(socket) ?? {};
    return request?.complete === false && response?.headersSent === false;
  }

  #turnAway(socket: Socket, reason: string): void {
    if (!socket.writable || this.#refusing >= MAX_REFUSING) {
      socket.destroy();
      return;
    }
    this.#turnedAway.add(socket);
    this.#refusing++;
    socket.once('close', () => this.#refusing--);
    const error = new AppError('overloaded', reason, { retryAfterSeconds: 2 });
    socket.end(rawProblem(error, newId('req', this.#deps.clock)));
    setTimeout(() => socket.destroy(), CHECK_MS).unref();
  }

  #cutSlow(): void {
    const now = this.#deps.clock.monotonic();
    const slowMs = this.#deps.slowSeconds * 1000;
    for (const [socket, transfer] of this.#transfers) {
      const { request, response } = transfer;
      if (request === undefined || response === undefined || response.closed) continue;
      const moved = socket.bytesRead + socket.bytesWritten - socket.writableLength;
      // Only time spent waiting for the client counts: not our own work, nor a body that we have paused.
      const reading = !request.complete && !request.isPaused() && request.readableFlowing !== false;
      const sending = response.headersSent && socket.writableLength > 0;
      const enough = moved - transfer.bytes >= (MIN_BYTES_PER_SECOND * slowMs) / 1000;
      if (transfer.seen !== request || !(reading || sending) || enough) {
        Object.assign(transfer, { seen: request, bytes: moved, since: now });
      } else if (now - transfer.since >= slowMs) {
        this.#cut(request, response);
      }
    }
  }

  #cut(request: IncomingMessage, response: ServerResponse): void {
    if (!response.headersSent) {
      const error = new AppError(
        'request_timeout',
        `The body arrived slower than 1 KiB/s for ${this.#deps.slowSeconds} s`,
      );
      request.socket.end(rawProblem(error, newId('req', this.#deps.clock)));
    }
    request.destroy();
    setTimeout(() => request.socket.destroy(), CHECK_MS).unref();
  }

  /** Refuses what Node could not parse as a request: bad framing, headers too large or too slow. */
  #refuse(error: ParserError, socket: Duplex): void {
    if (!socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const isTls = beginsTls(error.rawPacket);
    if (isTls) this.#warnOfTls();
    const refusal = isTls ? SPEAKS_HTTP : (CLIENT_ERRORS[error.code ?? ''] ?? NOT_HTTP);
    const { code, detail, ...extras } = refusal;
    endWith(socket, rawProblem(new AppError(code, detail, extras), newId('req', this.#deps.clock)));
  }

  /** TLS clients do not show the response, so the operator gets a log line, once. */
  #warnOfTls(): void {
    if (this.#hasWarnedOfTls) return;
    this.#hasWarnedOfTls = true;
    this.#deps.log.warn(`a client calls with https://, but these ports serve HTTP. ${SPEAKS_HTTP.hint}`);
  }
}

/** Sends the last response on a connection, then closes it, even if the client keeps its half open. */
export function endWith(socket: Duplex, response: string): void {
  socket.end(response);
  setTimeout(() => socket.destroy(), REFUSAL_MS).unref();
}

interface ParserError extends Error {
  readonly code?: string;
  /** The bytes that could not be parsed. */
  readonly rawPacket?: Buffer;
}

/** True for a record of a TLS handshake. */
function beginsTls(packet: Buffer | undefined): boolean {
  return packet?.[0] === 0x16 && packet[1] === 3;
}

interface Refusal {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly hint?: string;
}

const NOT_HTTP: Refusal = { code: 'bad_http', detail: 'The request is not valid HTTP/1.1' };
const SPEAKS_HTTP: Refusal = {
  code: 'bad_http',
  detail: 'This port serves HTTP, but was called with https://',
  hint: 'Use http://, or a TLS proxy in front: see deploy/Caddyfile, deploy/nginx.conf',
};
const CLIENT_ERRORS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: { code: 'headers_too_large', detail: 'The request headers are larger than 16 KiB' },
  ERR_HTTP_REQUEST_TIMEOUT: {
    code: 'request_timeout',
    detail: 'The request headers did not arrive in 15 s',
  },
};

/** A complete response as text, for sockets without a ServerResponse. `further`: additional headers. */
export function rawProblem(
  error: AppError,
  requestId: string,
  further: Readonly<Record<string, string>> = {},
): string {
  const problem = toProblem(error, requestId);
  const body = `${JSON.stringify(problem)}\n`;
  const headers = {
    ...further,
    ...problemHeaders(error),
    'content-type': PROBLEM_TYPE,
    'content-length': String(Buffer.byteLength(body)),
    'x-request-id': requestId,
    'x-content-type-options': 'nosniff',
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${problem.status} ${problem.title}\r\n${lines.join('')}\r\n${body}`;
}
