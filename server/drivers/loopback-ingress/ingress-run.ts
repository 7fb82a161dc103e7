/** One run of a guest as its address sees it: whether it lives, and on which ports it has answered. */
import { connect, type Socket } from 'node:net';
import type { GuestEndpoint } from '../../compute/hypervisor.ts';
import type { Clock } from '../../platform/clock.ts';
import { seekTalk, type Talk } from './guest-seeker.ts';

export interface IngressRunDeps {
  readonly clock: Clock;
  readonly endpointOf: (guestPort: number) => GuestEndpoint | null;
  readonly onSignOfLife: () => void;
  readonly timings: IngressTimings;
}

/** All in ms. */
export interface IngressTimings {
  /** Between two tries to find a guest that answers. */
  readonly retryMs: number;
  /** How long a client waits for a guest that does not answer yet. */
  readonly waitMs: number;
  /** How long a connection waits for a first sign of life before the guest is asked without one. */
  readonly holdMs: number;
  /** A guest that ends a connection without a byte so early did not listen yet. */
  readonly atOnceMs: number;
  /** How long a client that is told "not running" may take to ask and to hang up. */
  readonly lingerMs: number;
}

export const SSH_PORT = 22;
const KEEPALIVE_MS = 60_000;
/** How long a guest may take to end a connection that we ended. */
const PART_MS = 5000;

type Waiter = (talk: Talk | null) => void;

export class IngressRun {
  readonly #deps: IngressRunDeps;
  readonly #end = new AbortController();
  readonly #probe = new AbortController();
  readonly #answered = new Set<number>();
  readonly #waiters = new Set<Waiter>();
  readonly #lifeListeners = new Set<() => void>();
  #isAlive = false;

  constructor(deps: IngressRunDeps) {
    this.#deps = deps;
  }

  /** Asks the guest for its banner until it first says anything anywhere. */
  start(): void {
    if (this.#deps.endpointOf(SSH_PORT) === null) {
      this.#probe.abort();
      return;
    }
    void seekTalk(this.#seek(SSH_PORT, this.#probe.signal)).then((talk) => {
      if (talk !== null) this.answered(SSH_PORT);
      this.#handOver(talk);
    });
  }

  stop(): void {
    this.#end.abort();
    this.#probe.abort();
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Aborts when the run is over. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  hasAnswered(guestPort: number): boolean {
    return this.#answered.has(guestPort);
  }

  /** To be called at a guest's first byte on a connection. */
  answered(guestPort: number): void {
    this.#answered.add(guestPort);
    if (this.#isAlive || this.#end.signal.aborted) return;
    this.#isAlive = true;
    for (const listener of this.#lifeListeners) listener();
    this.#lifeListeners.clear();
    this.#deps.onSignOfLife();
    if (guestPort !== SSH_PORT) this.#probe.abort();
  }

  /** Resolves at the first sign of life, after `ms`, when the signal aborts, or when nobody looks for one. */
  life(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#isAlive || signal.aborted || this.#probe.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#lifeListeners.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms).unref();
      this.#lifeListeners.add(done);
      signal.addEventListener('abort', done);
    });
  }

  /** A connection to the guest's port, or null when there is no way there. */
  dial(guestPort: number): Socket | null {
    const endpoint = this.#deps.endpointOf(guestPort);
    return endpoint === null ? null : open(endpoint);
  }

  /**
   * A connection on which the guest has spoken; null when the signal aborts first. As long as this run's own
   * probe is under way nobody else dials: who waits first is given the very connection that it finds.
   */
  async talk(guestPort: number, signal: AbortSignal): Promise<Talk | null> {
    if (this.#deps.endpointOf(guestPort) === null) return null;
    if (guestPort === SSH_PORT && !this.#probe.signal.aborted) {
      const given = await this.#wait(signal);
      if (given !== null || signal.aborted) return given;
    }
    const talk = await seekTalk(this.#seek(guestPort, signal));
    if (talk !== null) this.answered(guestPort);
    return talk;
  }

  #wait(signal: AbortSignal): Promise<Talk | null> {
    return new Promise((resolve) => {
      const waiter = (talk: Talk | null) => {
        this.#waiters.delete(waiter);
        signal.removeEventListener('abort', leave);
        resolve(talk);
      };
      const leave = () => waiter(null);
      this.#waiters.add(waiter);
      signal.addEventListener('abort', leave);
    });
  }

  #handOver(talk: Talk | null): void {
    this.#probe.abort();
    let unclaimed = talk;
    for (const waiter of [...this.#waiters]) {
      waiter(unclaimed);
      unclaimed = null;
    }
    // Nobody waits: a guest's server is left with a proper end, not with a reset.
    if (unclaimed !== null) part(unclaimed.socket);
  }

  #seek(guestPort: number, signal: AbortSignal) {
    const { clock, timings, endpointOf } = this.#deps;
    const dial = () => open(endpointOf(guestPort) ?? NOWHERE);
    const isKnown = this.#answered.has(guestPort);
    return { clock, intervalMs: timings.retryMs, isKnown, signal, dial };
  }
}

function part(socket: Socket): void {
  const cut = setTimeout(() => socket.destroy(), PART_MS).unref();
  socket.once('close', () => clearTimeout(cut));
  socket.once('end', () => socket.destroySoon());
  socket.resume().end();
}

/** Refuses at once. */
const NOWHERE: GuestEndpoint = { host: '127.0.0.1', port: 1 };

function open({ host, port }: GuestEndpoint): Socket {
  const keepAlive = { keepAlive: true, keepAliveInitialDelay: KEEPALIVE_MS };
  const socket = connect({ host, port, noDelay: true, allowHalfOpen: true, ...keepAlive });
  // Each user of the socket waits for `close`, which follows; without a listener an error ends the process.
  socket.on('error', () => undefined);
  return socket;
}
