/** One user's connection: it waits at a listener, and is then forwarded to a server. */
import { connect, type Socket } from 'node:net';
import { relay, reset } from '../loopback-ingress/relay.ts';
import { LoginWatch, noEncryption, PROTOCOLS, type Protocol } from './login-watch.ts';

/** Connects a client of that address. Rejects with the error of the system, or another. */
export type Dial = (port: number, address: string) => Promise<Socket>;

/** A new client whose socket is not read yet. */
export interface Arrival {
  readonly socket: Socket;
  readonly address: string;
  /** Time of arrival, ms of the listener's clock. */
  readonly now: number;
}

export interface PassageDeps {
  readonly protocol: Protocol;
  readonly dial: Dial;
  /** The client needs a server: it sent something, or the server speaks first in its protocol. */
  readonly ready: () => void;
  /** The client has sent its first message. */
  readonly heard: () => void;
  /** The client seems to have logged in. */
  readonly proven: () => void;
  /** The connection to that port failed. */
  readonly failed: (port: number, error: NodeJS.ErrnoException) => void;
  readonly gone: () => void;
}

/** Source address of the proxy, which the host's rules accept (direct-routes.ts). */
export const PROXY_ADDRESS = '127.94.0.1';
/** Other systems have one address of the loopback only. */
const FROM = process.platform === 'linux' ? { localAddress: PROXY_ADDRESS } : {};
/** A server ends a login after five seconds: a longer connection is logged in. */
const PROVEN_MS = 5500;
/** A client that does not answer the server is disconnected after this, as the server would do. */
const SILENT_MS = 5000;
/** Time for a refused client to read the reason. */
const PART_MS = 5000;
/** Time for a client to close after the server has. */
const LINGER_MS = 30_000;
const KEEPALIVE_MS = 60_000;
const NO_COUNTS = { onIn() {}, onOut() {} };

/** Connects to a server of this host. */
export const dialHere: Dial = (port) => {
  const server = connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true, ...FROM });
  return new Promise((resolve, reject) => {
    server.once('connect', () => resolve(server.off('error', reject))).once('error', reject);
  });
};

export class Passage {
  readonly host: string;
  /** Time of arrival, ms of the listener's clock. */
  readonly since: number;
  readonly #client: Socket;
  readonly #deps: PassageDeps;
  /** Bytes received before the connection to the server: at most one piece, as reading then pauses. */
  #said: Buffer | null = null;
  #isThrough = false;
  #passedAt = 0;
  #isReady = false;
  #isProven = false;

  constructor({ socket: client, address, now }: Arrival, deps: PassageDeps) {
    this.#client = client;
    this.#deps = deps;
    this.host = address;
    this.since = now;
    // An error is always followed by `close`.
    client.on('error', () => {});
    client.once('close', () => deps.gone());
    client.setKeepAlive(true, KEEPALIVE_MS);
    client.once('data', this.#hear).once('end', this.#leave).resume();
  }

  /** The client is connected to a server, or is about to be. */
  get isThrough(): boolean {
    return this.#isThrough;
  }

  /** Call once it can be forwarded. */
  start(): void {
    if (PROTOCOLS[this.#deps.protocol].serverBegins) this.#beReady();
  }

  /** Connects it to that port. */
  pass(port: number, now: number): void {
    const client = this.#client;
    if (this.#isThrough || client.destroyed) return;
    this.#isThrough = true;
    this.#passedAt = now;
    this.#deps.dial(port, this.host).then(
      (server) => {
        server.on('error', () => {});
        if (client.destroyed) reset(server);
        else this.#join(server);
      },
      (error) => {
        this.#isThrough = false;
        if (!client.destroyed) this.#deps.failed(port, error);
      },
    );
  }

  /** Decides by time what cannot be observed. */
  age(now: number): void {
    if (this.#isThrough && now - this.#passedAt > PROVEN_MS) this.#prove();
    if (!this.#isReady && now - this.since > SILENT_MS) this.end();
  }

  /** Ends it with the server's reply. */
  refuse(reply: Buffer): void {
    const client = this.#client.off('data', this.#hear).off('end', this.#leave);
    setTimeout(() => client.destroy(), PART_MS).unref();
    const answer = (words: Buffer) => {
      const no = noEncryption(this.#deps.protocol, words);
      if (no !== null) return void client.once('data', answer).write(no);
      client.end(reply);
      // Remaining input is discarded; if unread, closing would reset the connection and lose the reply.
      client.on('data', () => {});
    };
    answer(this.#said ?? Buffer.alloc(0));
    client.once('end', () => client.destroySoon()).resume();
  }

  /** At once. */
  end(): void {
    reset(this.#client);
  }

  readonly #hear = (words: Buffer) => {
    this.#client.pause();
    this.#said = words;
    this.#deps.heard();
    this.#beReady();
  };

  /** A client that disconnects before it reaches the server is dropped. */
  readonly #leave = () => {
    if (!this.#isThrough) this.#client.destroy();
  };

  #beReady(): void {
    if (this.#isReady) return;
    this.#isReady = true;
    this.#deps.ready();
  }

  #join(server: Socket): void {
    const client = this.#client.off('data', this.#hear).off('end', this.#leave);
    if (this.#said !== null) server.write(this.#said);
    this.#said = null;
    this.#watch(server);
    server.once('end', () => {
      const cut = setTimeout(() => this.end(), LINGER_MS).unref();
      client.once('close', () => clearTimeout(cut));
    });
    relay(client, server, NO_COUNTS);
  }

  #watch(server: Socket): void {
    const watch = new LoginWatch(this.#deps.protocol);
    const look = (bytes: Buffer) => {
      const sight = this.#isProven ? 'never' : watch.sees(bytes);
      if (sight === 'in') this.#prove();
      if (sight !== 'not yet') server.off('data', look);
    };
    server.on('data', look);
    const heard = () => {
      if (this.#isProven) this.#client.off('data', heard);
      else this.#deps.heard();
    };
    this.#client.on('data', heard);
  }

  #prove(): void {
    if (this.#isProven) return;
    this.#isProven = true;
    this.#deps.proven();
  }
}
