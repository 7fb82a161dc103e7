/** The public ports of one thread: sockets, waiting and joined connections. */
import { createServer, type Server, type Socket } from 'node:net';
import { systemClock } from '../../platform/clock.ts';
import { Descriptors } from '../../platform/host/descriptors.ts';
import { UnauthenticatedConnections } from '../unauthenticated-connections.ts';
import { type Arrival, type Dial, dialHere, Passage } from './passage.ts';
import type { Listener, ListenerFigures, ProxyCall } from './server-proxy.ts';

/** Unauthenticated connections per listener; when exceeded, one of them is dropped. */
const MAX_UNAUTHENTICATED = 256;
/** Authenticated connections per listener. Servers accept fewer. */
const MAX_OPEN = 600;
/** Connections of all listeners; each takes two descriptors, of half that are available. */
const MAX_ALL = 8000;
const PER_PASSAGE = 2;
const PART_OF_LIMIT = 4;
/**
 * Above this share only listeners with few connections accept more, so that a flood at one listener does not
 * block others.
 */
const COMMON_PART = 0.75;
const FEW = 32;
/** A server that has not started by then will not. */
const WAIT_MS = 60_000;
const CHECK_MS = 1000;
const BACKLOG = 511;
const now = () => systemClock.monotonic();

interface State {
  readonly listener: Listener;
  readonly servers: Server[];
  readonly unauthenticated: UnauthenticatedConnections;
  readonly all: Set<Passage>;
  readonly waiting: Set<Passage>;
  port: number | null;
  accepted: number;
  /** When the server last did not accept a connection. */
  missedAt: number;
}

export interface ProxyListenersDeps {
  /** A connection waits at a listener without a running server. */
  readonly wanted: (listener: string) => void;
  readonly dial?: Dial;
  /**
   * The message for a client that could not be connected for other reasons than a missing server;
   * null: none.
   */
  readonly refusalOf?: (listener: Listener) => Buffer | null;
}

export class ProxyListeners {
  readonly #listeners = new Map<string, State>();
  readonly #deps: ProxyListenersDeps;
  readonly #timer: NodeJS.Timeout;
  /** Also limited to a share of the free descriptors. */
  readonly #descriptors = new Descriptors({ clock: systemClock, reserve: Number.POSITIVE_INFINITY });
  readonly #capacity = Math.min(MAX_ALL, Math.floor(this.#descriptors.limit / PART_OF_LIMIT));
  /** Connections through all listeners. */
  #count = 0;

  constructor(deps: ProxyListenersDeps) {
    this.#deps = deps;
    this.#timer = setInterval(() => this.#checkAll(), CHECK_MS);
  }

  /** Executes a call; see ServerProxy. */
  answer(call: ProxyCall): unknown {
    if (call.kind === 'open') return this.open(call.listener);
    if (call.kind === 'shut') return this.shut(call.name);
    if (call.kind === 'lead') return this.lead(call.name, call.port);
    if (call.kind === 'refuse') return this.refuse(call.name, Buffer.from(call.reply));
    if (call.kind === 'end') return this.endConnections(call.name);
    return this.figures(call.name);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#listeners.keys()].map((name) => this.shut(name)));
  }

  /** Accepts a client passed on by another node, as if it had connected to that listener. */
  take(name: string, socket: Socket, address: string): void {
    const state = this.#listeners.get(name);
    if (state === undefined) return void socket.destroy();
    this.#enter(state, { socket, address, now: now() });
  }

  /** Listens, and rejects with the error of the system when it cannot. */
  async open(listener: Listener): Promise<void> {
    if (this.#listeners.has(listener.name)) return;
    const state: State = {
      listener,
      servers: [],
      unauthenticated: new UnauthenticatedConnections(now),
      all: new Set(),
      waiting: new Set(),
      port: null,
      accepted: 0,
      missedAt: Number.NEGATIVE_INFINITY,
    };
    this.#listeners.set(listener.name, state);
    try {
      for (const address of listener.addresses) state.servers.push(await this.#listen(state, address));
    } catch (error) {
      await this.shut(listener.name);
      throw error;
    }
  }

  async shut(name: string): Promise<void> {
    const state = this.#listeners.get(name);
    if (state === undefined) return;
    this.#listeners.delete(name);
    const closed = state.servers.map((server) => new Promise((resolve) => server.close(resolve)));
    for (const passage of state.all) passage.end();
    await Promise.all(closed);
  }

  lead(name: string, port: number | null): void {
    const state = this.#listeners.get(name);
    if (state === undefined) return;
    state.port = port;
    if (port === null) return;
    for (const passage of state.waiting) passage.pass(port, now());
    state.waiting.clear();
  }

  refuse(name: string, reply: Buffer): void {
    const waiting = this.#listeners.get(name)?.waiting;
    for (const passage of waiting ?? []) passage.refuse(reply);
    waiting?.clear();
  }

  endConnections(name: string): void {
    for (const passage of this.#listeners.get(name)?.all ?? []) passage.end();
  }

  figures(name: string): ListenerFigures {
    const state = this.#listeners.get(name);
    const open = [...(state?.all ?? [])].filter(({ isThrough }) => isThrough).length;
    return { open, waiting: state?.waiting.size ?? 0, accepted: state?.accepted ?? 0 };
  }

  async #listen(state: State, address: string): Promise<Server> {
    const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true });
    server.on('connection', (socket) => {
      this.#enter(state, { socket, address: socket.remoteAddress ?? '', now: now() });
    });
    const { port } = state.listener;
    const host = address === '*' ? {} : { host: address };
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ port, backlog: BACKLOG, exclusive: true, ...host }, resolve);
    });
    // An error of one connection must not affect the others.
    server.on('error', () => {});
    return server;
  }

  #enter(state: State, arrival: Arrival): void {
    const { unauthenticated, all, waiting } = state;
    const isFull = all.size - unauthenticated.size >= MAX_OPEN || !this.#hasCapacity(state);
    // Closed connections free their slot immediately.
    if (unauthenticated.size > 0 && (isFull || unauthenticated.size >= MAX_UNAUTHENTICATED))
      unauthenticated.evict();
    else if (isFull) return void arrival.socket.destroy();
    state.accepted++;
    this.#count++;
    const passage: Passage = new Passage(arrival, {
      protocol: state.listener.protocol,
      dial: this.#deps.dial ?? dialHere,
      ready: () => this.#admit(state, passage),
      heard: () => unauthenticated.heard(passage),
      proven: () => unauthenticated.leave(passage),
      failed: (port, { code }) => {
        if (code === 'ECONNREFUSED') this.#miss(state, passage, port);
        else this.#refuse(state, passage);
      },
      gone: () => {
        this.#count--;
        unauthenticated.leave(passage);
        all.delete(passage);
        waiting.delete(passage);
      },
    });
    all.add(passage);
    unauthenticated.enter(passage);
    passage.start();
  }

  #hasCapacity({ all }: State): boolean {
    const isCommon = this.#count < this.#capacity * COMMON_PART;
    const isKept = all.size < FEW && this.#count < this.#capacity;
    return (isCommon || isKept) && this.#descriptors.take(PER_PASSAGE);
  }

  #admit({ listener, port, waiting }: State, passage: Passage): void {
    if (port !== null) return void passage.pass(port, now());
    waiting.add(passage);
    if (waiting.size === 1) this.#deps.wanted(listener.name);
  }

  #refuse({ listener }: State, passage: Passage): void {
    const words = this.#deps.refusalOf?.(listener) ?? null;
    if (words === null) passage.end();
    else passage.refuse(words);
  }

  /** Requests the new port of a moved server immediately, but rate-limited. */
  #miss(state: State, passage: Passage, port: number): void {
    if (state.port !== port && state.port !== null) return void passage.pass(state.port, now());
    state.waiting.add(passage);
    state.port = null;
    const last = state.missedAt;
    state.missedAt = now();
    if (state.missedAt - last > CHECK_MS) this.#deps.wanted(state.listener.name);
  }

  #checkAll(): void {
    const time = now();
    for (const { listener, all, waiting, port } of this.#listeners.values()) {
      for (const passage of waiting) if (time - passage.since > WAIT_MS) passage.end();
      for (const passage of all) passage.age(time);
      if (port === null && waiting.size > 0) this.#deps.wanted(listener.name);
    }
  }
}
