/**
 * Finds out whether a guest speaks on a port where servers speak first. An engine's forwarder accepts a
 * connection before the guest has a network: such a connection may be lost silently. So new ones are opened
 * repeatedly, and the first that delivers a byte wins. A guest that has answered before has a network: one
 * connection is opened, and may take its time (sshd turns callers away when too many connect at once).
 */
import type { Socket } from 'node:net';
import type { Clock } from '../../platform/clock.ts';
import { reset } from './relay.ts';

/** A guest that answered: its socket, paused, and its first bytes. */
export interface Talk {
  readonly socket: Socket;
  readonly first: Buffer;
}

export interface SeekOptions {
  readonly clock: Clock;
  /** A new connection, with allowHalfOpen. */
  readonly dial: () => Socket;
  readonly intervalMs: number;
  /** The guest answered on this port earlier in the same run. */
  readonly isKnown: boolean;
  /** Ends the search. */
  readonly signal: AbortSignal;
}

const MAX_DIALS = 8;
const MAX_KNOWN_DIALS = 1;
const KNOWN_PATIENCE_MS = 20_000;
/** A dial may wait for its first byte for this long, or for half of the time searched so far. */
const MIN_PATIENCE_MS = 2000;
/** Guests silent for long are probed less often: every hundredth of that time. */
const INTERVAL_SHARE = 100;
const MAX_INTERVAL_MS = 10_000;

/** Resolves with the first guest that answers, or null when the signal aborts. Never rejects. */
export function seekTalk(options: SeekOptions): Promise<Talk | null> {
  return new Promise((resolve) => new Seeker(options, resolve).start());
}

class Seeker {
  readonly #options: SeekOptions;
  readonly #resolve: (talk: Talk | null) => void;
  /** Each with the time it began. */
  readonly #dials = new Map<Socket, number>();
  readonly #startedAt: number;
  readonly #stop = () => this.#finish(null);
  #timer: NodeJS.Timeout | undefined;
  #isDone = false;

  constructor(options: SeekOptions, resolve: (talk: Talk | null) => void) {
    this.#options = options;
    this.#resolve = resolve;
    this.#startedAt = options.clock.monotonic();
  }

  start(): void {
    if (this.#options.signal.aborted) {
      this.#finish(null);
      return;
    }
    this.#options.signal.addEventListener('abort', this.#stop);
    this.#turn();
  }

  #turn(): void {
    const now = this.#options.clock.monotonic();
    const sought = now - this.#startedAt;
    const { isKnown, intervalMs } = this.#options;
    const patience = isKnown ? KNOWN_PATIENCE_MS : Math.max(MIN_PATIENCE_MS, sought / 2);
    for (const [dial, since] of this.#dials) if (now - since > patience) this.#drop(dial);
    if (this.#dials.size < (isKnown ? MAX_KNOWN_DIALS : MAX_DIALS)) this.#dial(now);
    const share = Math.min(sought / INTERVAL_SHARE, MAX_INTERVAL_MS);
    this.#timer = setTimeout(() => this.#turn(), Math.max(intervalMs, share)).unref();
  }

  #dial(now: number): void {
    const socket = this.#options.dial();
    this.#dials.set(socket, now);
    const drop = () => this.#drop(socket);
    socket.on('error', ignore).once('end', drop).once('close', drop);
    socket.once('data', (first: Buffer) => {
      if (this.#isDone) return;
      socket.pause();
      socket.off('error', ignore).off('end', drop).off('close', drop);
      this.#dials.delete(socket);
      this.#finish({ socket, first });
    });
  }

  #drop(socket: Socket): void {
    if (this.#dials.delete(socket)) socket.destroy();
  }

  #finish(talk: Talk | null): void {
    this.#isDone = true;
    clearTimeout(this.#timer);
    this.#options.signal.removeEventListener('abort', this.#stop);
    for (const dial of this.#dials.keys()) reset(dial);
    this.#dials.clear();
    this.#resolve(talk);
  }
}

function ignore(): void {
  // An error is always followed by `close`, which is what counts.
}
