/** One user's connection: it waits at a door, and then goes through to a server. */
import { connect, type Socket } from 'node:net';
import { LoginWatch, type Protocol } from './login-watch.ts';

export interface PassageDeps {
  readonly protocol: Protocol;
  /** It said something; a stranger who has is not silent any more. */
  readonly heard: () => void;
  /** Its user has logged in, or so it seems. */
  readonly proven: () => void;
  /** The server is not there: it waits again. */
  readonly refused: () => void;
  readonly gone: () => void;
}

/** From where the proxy comes: rules of the host let it through (direct-ways.ts). */
export const PROXY_ADDRESS = '127.94.0.1';
/** A server ends a log-in after five seconds: who is there for longer is in. */
const PROVEN_MS = 5500;
const LAST_WORDS_MS = 1000;

export class Passage {
  readonly host: string;
  readonly since: number;
  readonly #client: Socket;
  readonly #deps: PassageDeps;
  #server: Socket | null = null;
  /** What the client said before it was through. */
  #said: Buffer[] = [];
  #port: number | null = null;
  #passedAt = 0;
  #isProven = false;
  #reply: Buffer | null = null;

  /** `client`: not read yet. `now`: ms of any clock. */
  constructor(client: Socket, now: number, deps: PassageDeps) {
    this.#client = client;
    this.#deps = deps;
    this.host = client.remoteAddress ?? '';
    this.since = now;
    client.on('error', () => client.destroy());
    client.once('close', () => {
      this.#server?.destroy();
      deps.gone();
    });
    // Only its first words: that it is no silent stranger.
    if (deps.protocol === 'postgresql') this.#listen();
  }

  get isThrough(): boolean {
    return this.#server !== null;
  }

  /** Goes to that port as soon as it has said something, where the client speaks first. */
  pass(port: number, now: number): void {
    this.#port = port;
    this.#passedAt = now;
    if (this.#deps.protocol === 'mysql' || this.#said.length > 0) this.#connect();
  }

  /** It waits: the server is not there any more. */
  wait(): void {
    if (this.#server === null) this.#port = null;
  }

  /** Proves by its time what cannot be seen. */
  age(now: number): void {
    if (this.isThrough && now - this.#passedAt > PROVEN_MS) this.#prove();
  }

  /** Ends it with the server's words, once they can be heard. */
  refuse(reply: Buffer): void {
    this.#reply = reply;
    if (this.#deps.protocol === 'mysql' || this.#said.length > 0) this.#part(reply);
  }

  /** At once. */
  end(): void {
    this.#client.destroy();
  }

  #listen(): void {
    this.#client.once('data', (words: Buffer) => {
      this.#client.pause();
      this.#said.push(words);
      this.#deps.heard();
      if (this.#reply !== null) this.#part(this.#reply);
      else if (this.#port !== null) this.#connect();
    });
    // Who leaves before is gone.
    this.#client.once('end', () => {
      if (this.#server === null) this.#client.destroy();
    });
    this.#client.resume();
  }

  #part(reply: Buffer): void {
    this.#client.end(reply);
    // What it says now nobody needs; unread it would cut off the reply.
    this.#client.resume();
    setTimeout(() => this.#client.destroy(), LAST_WORDS_MS).unref();
  }

  #connect(): void {
    const client = this.#client;
    const where = { host: '127.0.0.1', port: this.#port ?? 0, localAddress: PROXY_ADDRESS };
    const server = connect({ ...where, noDelay: true, allowHalfOpen: true });
    const watch = new LoginWatch(this.#deps.protocol);
    this.#server = server;
    server.once('connect', () => {
      for (const words of this.#said) server.write(words);
      this.#said = [];
      this.#pump(client, server);
    });
    server.on('data', (bytes: Buffer) => {
      if (!this.#isProven && watch.sees(bytes)) this.#prove();
      if (!client.write(bytes)) server.pause();
    });
    client.on('drain', () => server.resume());
    server.once('end', () => client.end());
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNREFUSED' || client.destroyed) return client.destroy();
      this.#server = null;
      this.#port = null;
      this.#deps.refused();
    });
    server.once('close', () => {
      if (this.#server === server) client.destroySoon();
    });
  }

  #pump(client: Socket, server: Socket): void {
    client.on('data', (bytes: Buffer) => {
      if (!this.#isProven) this.#deps.heard();
      if (!server.write(bytes)) client.pause();
    });
    server.on('drain', () => client.resume());
    client.once('end', () => server.end());
    if (client.readableEnded) server.end();
    client.resume();
  }

  #prove(): void {
    if (this.#isProven) return;
    this.#isProven = true;
    this.#deps.proven();
  }
}
