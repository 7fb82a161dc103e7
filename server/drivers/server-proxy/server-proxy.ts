/**
 * Where users of database servers connect, whether these run or not: a port that never changes. A
 * connection to a server that sleeps waits until that is up. Who has not logged in yet is bounded for each
 * door.
 */
import { Worker } from 'node:worker_threads';
import { AppError } from '../../platform/errors.ts';
import { holderOf } from '../server-port.ts';
import { DirectWays } from './direct-ways.ts';
import type { Protocol } from './login-watch.ts';

export interface Door {
  /** No two have the same. */
  readonly name: string;
  /** Where users connect; `*`: every address. */
  readonly addresses: readonly string[];
  readonly port: number;
  readonly protocol: Protocol;
}

/** Connections by the proxy; those that go past it are the server's to count. */
export interface DoorFigures {
  readonly open: number;
  readonly waiting: number;
  /** Since the door was opened. */
  readonly accepted: number;
}

export interface ServerProxyDeps {
  /** A connection waits at a door that leads nowhere: called at once, and every second while some wait. */
  readonly wanted: (door: string) => void;
  readonly warn: (text: string) => void;
  /** Of nftables; another one in each cloud of a host. */
  readonly table: string;
}

/** What the thread is asked. */
export type ProxyCall =
  | { readonly kind: 'open'; readonly door: Door }
  | { readonly kind: 'lead'; readonly name: string; readonly port: number | null }
  | { readonly kind: 'refuse'; readonly name: string; readonly reply: Uint8Array }
  | { readonly kind: 'shut' | 'end' | 'figures'; readonly name: string };

type Told =
  | { readonly wanted: string }
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly failure: { readonly code: string; readonly message: string } };

interface Kept {
  readonly door: Door;
  port: number | null;
}

const LOOPBACK = ['127.0.0.1', '*'];

export class ServerProxy {
  readonly #deps: ServerProxyDeps;
  readonly #direct: DirectWays;
  readonly #doors = new Map<string, Kept>();
  readonly #asked = new Map<number, PromiseWithResolvers<unknown>>();
  #thread: Worker | null = null;
  #lastId = 0;
  #isClosed = false;

  constructor(deps: ServerProxyDeps) {
    this.#deps = deps;
    this.#direct = new DirectWays(deps.table);
  }

  /** Why new connections of this host go by the proxy, for humans; null: they go straight to the servers. */
  get directProblem(): string | null {
    return this.#direct.problem;
  }

  /** Listens. A door that is open stays so. Throws `engine_unavailable` that names who has its port. */
  async open(door: Door): Promise<void> {
    if (this.#doors.has(door.name)) return;
    await this.#ask({ kind: 'open', door }).catch((error: NodeJS.ErrnoException) => {
      throw cannotListen(door, error);
    });
    this.#doors.set(door.name, { door, port: null });
  }

  /** Ends its listener and the connections that go by us. */
  async shut(name: string): Promise<void> {
    if (!this.#doors.has(name)) return;
    await this.lead(name, null);
    this.#doors.delete(name);
    await this.#ask({ kind: 'shut', name });
  }

  /**
   * Where its connections go from now on: a port of 127.0.0.1; null: newcomers wait. Those that are through
   * stay. Resolves when it is in force.
   */
  async lead(name: string, port: number | null): Promise<void> {
    const kept = this.#doors.get(name);
    if (kept === undefined) return;
    kept.port = port;
    const { door } = kept;
    const isLocal = door.addresses.some((address) => LOOPBACK.includes(address));
    if (isLocal && port === null) await this.#direct.set(door.port, null);
    await this.#ask({ kind: 'lead', name, port });
    if (isLocal && port !== null) await this.#direct.set(door.port, port);
  }

  /** Ends all that wait, with these bytes. */
  refuse(name: string, reply: Buffer): void {
    void this.#ask({ kind: 'refuse', name, reply }).catch(() => {});
  }

  /** Ends all connections that go by us. */
  endConnections(name: string): void {
    void this.#ask({ kind: 'end', name }).catch(() => {});
  }

  async figures(name: string): Promise<DoorFigures> {
    return (await this.#ask({ kind: 'figures', name })) as DoorFigures;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#direct.close();
    this.#doors.clear();
    await this.#thread?.terminate();
  }

  #ask(call: ProxyCall): Promise<unknown> {
    if (this.#isClosed) return Promise.resolve();
    this.#thread ??= this.#start();
    const id = ++this.#lastId;
    const asked = Promise.withResolvers<unknown>();
    this.#asked.set(id, asked);
    this.#thread.postMessage({ id, call });
    return asked.promise;
  }

  #start(): Worker {
    const thread = new Worker(new URL('./proxy-thread.ts', import.meta.url), { execArgv: [] });
    thread.on('message', (told: Told) => this.#hear(told));
    thread.once('error', (error) => this.#deps.warn(`the proxy of database servers failed: ${error}`));
    thread.once('exit', () => this.#again());
    thread.unref();
    return thread;
  }

  #hear(told: Told): void {
    if ('wanted' in told) {
      this.#deps.wanted(told.wanted);
      return;
    }
    const asked = this.#asked.get(told.id);
    this.#asked.delete(told.id);
    if ('failure' in told) {
      const { code, message } = told.failure;
      asked?.reject(Object.assign(new Error(message), { code }));
    } else asked?.resolve(told.answer);
  }

  /** The thread ended: another one has the same doors. */
  #again(): void {
    this.#thread = null;
    for (const asked of this.#asked.values()) asked.reject(new Error('the proxy of database servers ended'));
    this.#asked.clear();
    if (this.#isClosed) return;
    for (const { door, port } of this.#doors.values()) {
      this.#ask({ kind: 'open', door })
        .then(() => this.#ask({ kind: 'lead', name: door.name, port }))
        .catch((error) => this.#deps.warn(`port ${door.port} of databases cannot be opened again: ${error}`));
    }
  }
}

function cannotListen({ port }: Door, cause: NodeJS.ErrnoException): AppError {
  const isTaken = cause.code === 'EADDRINUSE';
  const holder = isTaken ? (holderOf(port) ?? 'another program') : null;
  const detail = isTaken
    ? `port ${port} of databases is taken by ${holder}`
    : `port ${port} of databases cannot be opened (${cause.code || cause.message})`;
  return new AppError('engine_unavailable', detail, {
    hint: isTaken ? 'stop that program; it is tried again within a minute' : 'ask the operator',
    retryAfterSeconds: 5,
    cause,
  });
}
