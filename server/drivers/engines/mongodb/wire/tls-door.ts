/**
 * Encrypts the connections of drivers: all of them if TLS is required, else those that use it. A
 * handshake costs more to answer than to begin, so each source may begin a limited number in a
 * window, and the number of concurrent ones is limited.
 */
import type { Socket } from 'node:net';
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls';
import type { ServerTls } from '../../../managed-server/links/server-tls.ts';
import { UnauthenticatedConnections } from '../../../unauthenticated-connections.ts';

export interface Arrival {
  readonly socket: Socket;
  /** Key for counting handshakes: an address, or an account that uses tunnels. */
  readonly source: string;
}

/**
 * A TLS 1.0 to 1.3 handshake record (RFC 8446, 5.1). Read as a message length, these bytes mean more than 64
 * KiB, which is not allowed before login.
 */
const HEAD_BYTES = 3;
const HANDSHAKE = 0x16;
const [MAJOR, FIRST_MINOR, LAST_MINOR] = [0x03, 0x01, 0x04];
/** Maximum handshakes per source in a window; each takes 0.3 ms of the processor (measured). */
const PER_WINDOW = 50;
const WINDOW_MS = 250;
/** Maximum concurrent handshakes; each holds 63 KB (measured). */
const MAX_UNDER_WAY = 256;

export class TlsDoor {
  readonly #tls: ServerTls | null;
  readonly #underWay: UnauthenticatedConnections;
  #context: SecureContext | null = null;
  /** Handshakes begun in this window, by source. */
  readonly #begun = new Map<string, number>();
  #waiting = new Map<string, { readonly socket: Socket; readonly begin: () => void }[]>();
  #timer: NodeJS.Timeout | undefined;

  /** `now`: ms of any clock. `tls`: null passes connections on unchanged. */
  constructor(tls: ServerTls | null, now: () => number) {
    this.#tls = tls;
    this.#underWay = new UnauthenticatedConnections(now);
  }

  /** Loads a new certificate. Throws `engine_unavailable` if there is none. */
  renew(): void {
    if (this.#tls !== null) this.#context = createSecureContext(this.#tls.certificate());
  }

  /**
   * Resolves with the socket to read from, which shows whether the handshake succeeds. Throws
   * `engine_unavailable` without a certificate.
   */
  async enter({ socket, source }: Arrival): Promise<Socket> {
    if (this.#tls === null) return socket;
    if (!this.#tls.isRequired && !isHandshake(await headOf(socket))) return socket;
    await this.#turn({ socket, source });
    if (socket.destroyed) return socket;
    if (this.#context === null) this.renew();
    const secureContext = this.#context ?? undefined;
    const secure = new TLSSocket(socket, { isServer: true, ...(secureContext && { secureContext }) });
    if (this.#underWay.size >= MAX_UNDER_WAY) this.#underWay.evict();
    const handshake = { host: source, end: () => secure.destroy() };
    this.#underWay.enter(handshake);
    const leave = () => this.#underWay.leave(handshake);
    return secure.once('secure', leave).once('close', leave);
  }

  /** Resolves when it may begin. The newest waiter goes first, because it has most of its time left. */
  #turn({ socket, source }: Arrival): Promise<void> {
    const begun = this.#begun.get(source) ?? 0;
    this.#watch();
    if (begun < PER_WINDOW) {
      this.#begun.set(source, begun + 1);
      return Promise.resolve();
    }
    const { promise, resolve: begin } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(source) ?? [];
    waiting.push({ socket, begin });
    this.#waiting.set(source, waiting);
    return promise;
  }

  #watch(): void {
    this.#timer ??= setTimeout(() => this.#nextWindow(), WINDOW_MS).unref();
  }

  #nextWindow(): void {
    this.#timer = undefined;
    this.#begun.clear();
    const all = this.#waiting;
    this.#waiting = new Map();
    for (const [source, waiting] of all) {
      for (const { socket, begin } of waiting) if (socket.destroyed) begin();
      const alive = waiting.filter(({ socket }) => !socket.destroyed);
      const next = alive.splice(-PER_WINDOW);
      for (const { begin } of next) begin();
      if (next.length > 0) this.#begun.set(source, next.length);
      if (alive.length > 0) this.#waiting.set(source, alive);
    }
    if (this.#begun.size > 0) this.#watch();
  }
}

function isHandshake(head: Buffer): boolean {
  const [kind, major, minor = 0] = head;
  return kind === HANDSHAKE && major === MAJOR && minor >= FIRST_MINOR && minor <= LAST_MINOR;
}

/** The first bytes, which remain readable; fewer at the end of the stream. */
function headOf(socket: Socket): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  let head = Buffer.alloc(0);
  // Not by `readable`, which is emitted again immediately while bytes are missing.
  const take = (piece: Buffer) => {
    head = Buffer.concat([head, piece]);
    if (head.length >= HEAD_BYTES) done();
  };
  const done = () => {
    socket.off('data', take).off('end', done).off('close', done).pause();
    if (!socket.readableEnded && !socket.destroyed) socket.unshift(head);
    resolve(head);
  };
  socket.on('data', take).once('end', done).once('close', done);
  return promise;
}
