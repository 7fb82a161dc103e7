/**
 * The port where users of database servers connect, whether these run or not: it never changes. A
 * connection to a sleeping server waits until that is up. Unauthenticated connections are limited
 * for each listener.
 */
import type { Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { systemClock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { programFile } from '../../platform/program-files.ts';
import type { CloudClaim } from '../host-network/cloud-claim.ts';
import type { OfferedPorts } from '../offered-ports.ts';
import { holderOf } from '../server-port.ts';
import { DirectRoutes } from './direct-routes.ts';
import type { Protocol } from './login-watch.ts';
import { ProxyListeners } from './proxy-listeners.ts';

export interface Listener {
  /** No two have the same. */
  readonly name: string;
  /** Where users connect; `*`: every address. */
  readonly addresses: readonly string[];
  readonly port: number;
  readonly protocol: Protocol;
}

/** Connections through the proxy; connections that bypass it are counted by the server. */
export interface ListenerFigures {
  readonly open: number;
  readonly waiting: number;
  /** Totals since the listener was opened. */
  readonly accepted: number;
}

export interface ServerProxyDeps {
  /** A connection waits at a listener without a running server: called at once, then every second. */
  readonly wanted: (listener: string) => void;
  readonly warn: (text: string) => void;
  /** Distinguishes our nftables rules from those of other clouds on this host. */
  readonly claim: CloudClaim;
  /** Other cluster nodes pass connections on; missing: no other nodes. */
  readonly ports?: OfferedPorts | undefined;
}

/** Messages to the thread. */
export type ProxyCall =
  | { readonly kind: 'open'; readonly listener: Listener }
  | { readonly kind: 'lead'; readonly name: string; readonly port: number | null }
  | { readonly kind: 'refuse'; readonly name: string; readonly reply: Uint8Array }
  | { readonly kind: 'shut' | 'end' | 'figures'; readonly name: string };

type ProxyMessage =
  | { readonly wanted: string }
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly failure: { readonly code: string; readonly message: string } };

interface Kept {
  readonly listener: Listener;
  port: number | null;
  /** The target of a listener is changed by one call at a time: the last one wins. */
  turn: Promise<void>;
}

/** The thread ended before it answered. */
class ThreadEnded extends Error {}

const LOOPBACK = ['127.0.0.1', '*'];
/** Delay before a failed operation is retried; doubled each time. */
const RETRY_MS = 500;
const MOST_RETRY_MS = 60_000;
/** A thread that ran for this long ended for another reason than the previous one. */
const STEADY_MS = 60_000;

export class ServerProxy {
  readonly #deps: ServerProxyDeps;
  readonly #direct: DirectRoutes;
  /** Clients of another node: sockets of HTTP servers cannot go to a thread. */
  readonly #passedOn: ProxyListeners | null;
  readonly #listeners = new Map<string, Kept>();
  readonly #asked = new Map<number, PromiseWithResolvers<unknown>>();
  #thread: Worker | null = null;
  #startedAt = 0;
  /** Consecutive threads that ended early. */
  #failures = 0;
  #lastId = 0;
  #isClosed = false;

  constructor(deps: ServerProxyDeps) {
    this.#deps = deps;
    this.#direct = new DirectRoutes(deps);
    this.#passedOn = deps.ports === undefined ? null : new ProxyListeners(deps);
  }

  /** Why new connections of this host go by the proxy, for humans; null: they go straight to the servers. */
  get directProblem(): string | null {
    return this.#direct.problem;
  }

  /** Listens; an open listener stays open. Throws `engine_unavailable` that names the program on its port. */
  async open(listener: Listener): Promise<void> {
    if (this.#listeners.has(listener.name)) return;
    if (isLocal(listener)) await this.#direct.begin(listener.port);
    await this.#ask({ kind: 'open', listener }).catch((error: NodeJS.ErrnoException) => {
      throw cannotListen(listener, error);
    });
    this.#listeners.set(listener.name, { listener, port: null, turn: Promise.resolve() });
    const { name, port, protocol, addresses } = listener;
    await this.#passedOn?.open({ ...listener, addresses: [] });
    const take = (client: Socket, address: string) => this.#passedOn?.take(name, client, address);
    this.#deps.ports?.offer(port, { protocol, addresses, take });
  }

  /** Closes its listener and the connections through it. */
  async shut(name: string): Promise<void> {
    const kept = this.#listeners.get(name);
    if (kept === undefined) return;
    this.#deps.ports?.withdraw(kept.listener.port);
    await this.lead(name, null);
    this.#listeners.delete(name);
    await Promise.all([this.#tell({ kind: 'shut', name }), this.#passedOn?.shut(name)]);
  }

  /**
   * The target of its connections from now on: a port of 127.0.0.1; null: new ones wait. Existing
   * connections continue. Resolves when it is in force.
   */
  async lead(name: string, port: number | null): Promise<void> {
    const kept = this.#listeners.get(name);
    if (kept === undefined) return;
    kept.port = port;
    kept.turn = kept.turn.catch(() => {}).then(() => this.#leadNow(kept));
    await kept.turn;
  }

  async #leadNow({ listener, port }: Kept): Promise<void> {
    if (isLocal(listener) && port === null) await this.#direct.set(listener.port, null);
    this.#passedOn?.lead(listener.name, port);
    await this.#tell({ kind: 'lead', name: listener.name, port });
    if (isLocal(listener) && port !== null) await this.#direct.set(listener.port, port);
  }

  /** Ends all waiting connections with these bytes. */
  refuse(name: string, reply: Buffer): void {
    this.#passedOn?.refuse(name, reply);
    void this.#tell({ kind: 'refuse', name, reply });
  }

  /** Ends all connections through us. */
  endConnections(name: string): void {
    this.#passedOn?.endConnections(name);
    void this.#tell({ kind: 'end', name });
  }

  async figures(name: string): Promise<ListenerFigures> {
    const all = [await this.#tell({ kind: 'figures', name }), this.#passedOn?.figures(name)];
    const figures = all.filter((each) => each !== undefined) as ListenerFigures[];
    const sum = (key: keyof ListenerFigures) => figures.reduce((total, each) => total + each[key], 0);
    return { open: sum('open'), waiting: sum('waiting'), accepted: sum('accepted') };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#listeners.clear();
    await Promise.all([this.#direct.close(), this.#passedOn?.close()]);
    await this.#thread?.terminate();
  }

  /** Same as #ask(); a new thread restores the kept state, without connections. */
  #tell(call: ProxyCall): Promise<unknown> {
    return this.#ask(call).catch((error) => {
      if (!(error instanceof ThreadEnded)) throw error;
    });
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
    const thread = new Worker(programFile('drivers/server-proxy/proxy-thread'), { execArgv: [] });
    this.#startedAt = systemClock.monotonic();
    thread.on('message', (message: ProxyMessage) => this.#receive(message));
    thread.once('error', (error) => this.#deps.warn(`the database proxy failed: ${error}`));
    thread.once('exit', () => this.#ended());
    thread.unref();
    return thread;
  }

  #receive(reply: ProxyMessage): void {
    if ('wanted' in reply) {
      this.#deps.wanted(reply.wanted);
      return;
    }
    const asked = this.#asked.get(reply.id);
    this.#asked.delete(reply.id);
    if ('failure' in reply) {
      const { code, message } = reply.failure;
      asked?.reject(Object.assign(new Error(message), { code }));
    } else asked?.resolve(reply.answer);
  }

  /** Another thread has the same listeners. */
  #ended(): void {
    this.#thread = null;
    for (const asked of this.#asked.values()) asked.reject(new ThreadEnded('the database proxy ended'));
    this.#asked.clear();
    if (this.#isClosed) return;
    const wasSteady = systemClock.monotonic() - this.#startedAt > STEADY_MS;
    this.#failures = wasSteady ? 0 : this.#failures + 1;
    const wait = retryMs(this.#failures - 1);
    this.#deps.warn(`the database proxy and its connections ended; restarting in ${wait} ms`);
    const bringBack = () => {
      for (const kept of this.#listeners.values()) void this.#reopen(kept);
    };
    setTimeout(bringBack, wait).unref();
  }

  async #reopen(kept: Kept, tries = 0): Promise<void> {
    const { listener } = kept;
    if (this.#listeners.get(listener.name) !== kept) return;
    try {
      await this.#ask({ kind: 'open', listener });
      await this.#ask({ kind: 'lead', name: listener.name, port: kept.port });
    } catch (error) {
      if (error instanceof ThreadEnded) return;
      const wait = retryMs(tries);
      this.#deps.warn(
        `${cannotListen(listener, error as NodeJS.ErrnoException).message}; retrying in ${wait} ms`,
      );
      setTimeout(() => void this.#reopen(kept, tries + 1), wait).unref();
    }
  }
}

function isLocal({ addresses }: Listener): boolean {
  return addresses.some((address) => LOOPBACK.includes(address));
}

function retryMs(failures: number): number {
  return Math.min(RETRY_MS * 2 ** Math.max(failures, 0), MOST_RETRY_MS);
}

function cannotListen({ port }: Listener, cause: NodeJS.ErrnoException): AppError {
  const isTaken = cause.code === 'EADDRINUSE';
  const holder = isTaken ? (holderOf(port) ?? 'another program') : null;
  const detail = isTaken
    ? `database port ${port} is in use by ${holder}`
    : `database port ${port} cannot be opened (${cause.code || cause.message})`;
  return new AppError('engine_unavailable', detail, {
    hint: isTaken ? 'stop that program; Cloudlet retries within a minute' : 'ask the operator',
    retryAfterSeconds: 5,
    cause,
  });
}
