/**
 * Limits the cost of connections: their number, the minimum speed of bodies, and how long a
 * response may wait for its reader. Sends a problem document for requests that Node's parser
 * rejects.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { AppError, type ErrorCode } from '../../platform/errors.ts';
import { sourceOf } from '../../platform/host/caller-networks.ts';
import { newId } from '../../platform/ids.ts';
import { ownerOf } from '../exchange.ts';
import { endWith, rawProblem } from '../response.ts';
import { ConnectionSlots, type SlotDeps } from './connection-slots.ts';
import { type SlowReader, SlowReaders } from './slow-readers.ts';

export interface GuardDeps extends SlotDeps {
  /** A request body slower than MIN_BYTES_PER_SECOND for this long is aborted. */
  readonly slowSeconds: number;
  /** A response is aborted if its reader accepts hardly any bytes for this long. */
  readonly pauseSeconds: number;
  /** Memory for responses that slow readers have not read yet, of all accounts together. */
  readonly maxWaitingBytes: number;
  readonly log: Pick<Logger, 'warn'>;
}

const MIN_BYTES_PER_SECOND = 1024;
/** A transfer of at least this many bytes continues. */
const MIN_BYTES = 30 * MIN_BYTES_PER_SECOND;
const CHECK_MS = 1000;
/** When memory or connections are short, a reader this slow is disconnected. */
const SLOW_READER_MS = 2000;
/** While all connections are in use, the account that uses most keeps this share of them. */
const OWNER_SHARE = 1 / 64;
/** Maximum concurrent refusals with a reason; further connections are closed without one. */
const MAX_REFUSING = 200;

/** The latest request of a connection, and its progress at the last check. */
interface Transfer {
  request: IncomingMessage | undefined;
  response: ServerResponse | undefined;
  seen: IncomingMessage | undefined;
  bytes: number;
  since: number;
  /** Bytes written to the socket, and the largest size of the kernel's queue since. */
  settled: number;
  peak: number;
}

/** A connection with a request whose response has not ended, or with a WebSocket. */
interface Used {
  readonly socket: Socket;
  readonly by: ServerResponse | Socket;
}

export class ConnectionGuard {
  readonly #deps: GuardDeps;
  readonly #slots: ConnectionSlots;
  readonly #transfers = new Map<Socket, Transfer>();
  /** Refused connections: later data on them is ignored. */
  readonly #turnedAway = new WeakSet<Socket>();
  #refusing = 0;
  #hasWarnedOfTls = false;
  /** Runs while there are connections: an idle cloud does not wake up for it. */
  #timer: NodeJS.Timeout | undefined;
  /** Results of the last check. */
  #slowReaders = new SlowReaders([]);
  #crowding: Used[] = [];

  constructor(deps: GuardDeps) {
    this.#deps = deps;
    this.#slots = new ConnectionSlots(deps, {
      close: (socket, { reason, wasUsed }) => {
        // A client with a pending response would take a refusal for that response.
        const isAnswering = this.#transfers.get(socket)?.response?.headersSent === true;
        if (wasUsed || isAnswering || this.#isReceiving(socket)) socket.destroy();
        else this.#turnAway(socket, reason);
      },
      isReceiving: (socket) => this.#isReceiving(socket),
      slowReader: (of) => this.#slowReaders.take(of),
      crowding: () => this.#takeCrowding(),
    });
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
      this.#timer ??= setInterval(() => this.#check(), CHECK_MS).unref();
      this.#transfers.set(socket, {
        request: undefined,
        response: undefined,
        seen: undefined,
        bytes: 0,
        since: 0,
        settled: 0,
        peak: 0,
      });
      socket.on('close', () => {
        this.#transfers.delete(socket);
        this.#slots.leave(socket);
      });
      const slot = this.#slots.enter(socket);
      if (slot.kind === 'none') this.#turnAway(socket, slot.reason);
    });
    // Without our listener Node treats the request as an ordinary one, and must still do so.
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
    // By default, Node would send 417 without a body; an expectation may be ignored (RFC 9110 §10.1.1).
    server.on('checkExpectation', (request, response) => server.emit('request', request, response));
    // Fastify's own listener would run first, and does not send a problem document.
    server.removeAllListeners('clientError');
    server.on('clientError', (error, socket) => this.#refuse(error, socket));
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
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

  #check(): void {
    this.#cutSlow();
    this.#crowding = this.#slots.isFull ? this.#crowdingNow() : [];
    if (this.#transfers.size === 0) this.close();
  }

  /** Connections of the account that uses most, beyond its share; the newest last. */
  #crowdingNow(): Used[] {
    const owners = new Map<number, Used[]>();
    for (const [socket, { response }] of this.#transfers) {
      const by = ownerOf(socket) === undefined ? response : socket;
      const owner = by === undefined || by.closed ? undefined : ownerOf(by);
      if (by === undefined || owner === undefined) continue;
      const own = owners.get(owner) ?? [];
      owners.set(owner, own);
      own.push({ socket, by });
    }
    let most: Used[] = [];
    for (const own of owners.values()) if (own.length > most.length) most = own;
    return most.slice(Math.ceil(this.#deps.maxConnections * OWNER_SHARE));
  }

  #takeCrowding(): Socket | undefined {
    for (;;) {
      const last = this.#crowding.pop();
      // A proxy uses a connection for other callers once the response is sent.
      if (last === undefined || !last.by.closed) return last?.socket;
    }
  }

  #cutSlow(): void {
    const now = this.#deps.clock.monotonic();
    const slow: SlowReader[] = [];
    for (const [socket, transfer] of this.#transfers) {
      const { request, response } = transfer;
      if (request === undefined || response === undefined || response.closed) continue;
      const moved = movedBytes(socket, transfer);
      // Only time spent waiting for the client counts: not our own work, nor a body that we have paused.
      const reading = !request.complete && !request.isPaused() && request.readableFlowing !== false;
      const sending = response.headersSent && socket.writableLength > 0;
      const limitMs = (reading ? this.#deps.slowSeconds : this.#deps.pauseSeconds) * 1000;
      const wanted = reading ? (MIN_BYTES_PER_SECOND * limitMs) / 1000 : MIN_BYTES;
      if (transfer.seen !== request || !(reading || sending) || moved - transfer.bytes >= wanted) {
        Object.assign(transfer, { seen: request, bytes: moved, since: now });
      } else if (now - transfer.since >= limitMs) {
        this.#cut(request, response);
      } else if (!reading && now - transfer.since >= SLOW_READER_MS) {
        const owner = ownerOf(response) ?? sourceOf(socket.remoteAddress ?? '');
        slow.push({ socket, owner, since: transfer.since, waitingBytes: socket.writableLength });
      }
    }
    this.#slowReaders = new SlowReaders(slow);
    for (const socket of this.#slowReaders.takeBeyond(this.#deps.maxWaitingBytes)) socket.destroy();
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

/**
 * Bytes transferred in either direction, for comparison. Includes the part of a chunk that has left
 * the kernel's queue, because a large chunk takes long.
 */
function movedBytes(socket: Socket, transfer: Transfer): number {
  const settled = socket.bytesRead + socket.bytesWritten - socket.writableLength;
  // Node's idle timeout of sockets uses the same number.
  const { _handle: handle } = socket as { _handle?: { writeQueueSize?: number } | null };
  const queued = handle?.writeQueueSize ?? 0;
  transfer.peak = settled === transfer.settled ? Math.max(transfer.peak, queued) : queued;
  transfer.settled = settled;
  return settled + transfer.peak - queued;
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
