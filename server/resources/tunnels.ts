/**
 * Tunnels: each carries the bytes of one TCP connection to a machine or a database over one WebSocket, both
 * ways, without more than a window of them in memory. Binary frames are the bytes; an empty text frame ends
 * the sender's side and leaves the other one open.
 */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { GatheredWrites } from '../../libs/net/index.ts';
import type { Clock } from '../platform/clock.ts';
import { Counts } from '../platform/concurrency.ts';
import { AppError } from '../platform/errors.ts';
import { SharedSlots } from '../platform/shared-slots.ts';
import { type TunnelEnd, TunnelLog, type TunnelLogTarget } from './tunnel-log.ts';

/** The machine or database at the end of a tunnel. */
export interface TunnelTarget extends TunnelLogTarget {
  /** A connection that allows half-open. Throws AppErrors. */
  dial(): Promise<Duplex>;
  /** False once its tunnels must end: it was stopped, suspended or deleted. */
  isOpen(): Promise<boolean>;
  /** Counts bytes sent from the target to the client. */
  sent(bytes: number): void;
}

/** The client's side; see Channel in http/connections/web-sockets.ts. */
export interface TunnelChannel {
  write(bytes: Uint8Array): Promise<void> | undefined;
  send(text: string): void;
  close(code: number, reason: string): void;
}

export interface TunnelsDeps {
  readonly clock: Clock;
  /** A tunnel without traffic for this long is closed, ms. */
  readonly idleMs: number;
  /** Maximum tunnels of all accounts. */
  readonly max: number;
  /** Throws `insufficient_capacity` if this process may not open this many more files. */
  readonly assertFree: (files: number) => void;
  readonly onError: (id: string, what: string, error: unknown) => void;
}

/** Bytes of a client that its target has not accepted; above this, the client waits. */
const WINDOW_BYTES = 64 * 1024;
/** Maximum concurrent tunnels. */
const MAX_PER_ACCOUNT = 200;
const MAX_PER_TARGET = 100;
/** The connection to the target; the client's is counted by its edge. */
const FILES = 1;

/** Close codes: RFC 6455 §7.4, and of the range that it leaves to applications. */
const CLOSED = {
  ended: 1000,
  notUnderstood: 1003,
  reset: 4001,
  gone: 4002,
  idle: 4003,
  displaced: 4004,
} as const;
type Ending = keyof typeof CLOSED;

const REASONS: Readonly<Record<Ending, string>> = {
  ended: '',
  notUnderstood: 'Send bytes in binary frames; an empty text frame ends your direction',
  reset: 'The other side closed the connection abruptly',
  gone: 'The machine or database was stopped, suspended or deleted',
  idle: 'The tunnel was idle for too long',
  displaced: 'All tunnels of the cloud were in use, and this account had most of them',
};

export class Tunnels {
  readonly #deps: TunnelsDeps;
  /** Including those being opened. */
  readonly #byAccount = new Counts<number>();
  readonly #byTarget = new Counts<string>();
  readonly #open = new Set<Tunnel>();
  readonly #log: TunnelLog;
  /** Slots of accounts. */
  readonly #slots: SharedSlots<number>;

  constructor(deps: TunnelsDeps) {
    this.#deps = deps;
    this.#slots = new SharedSlots(deps.max);
    this.#log = new TunnelLog(deps);
  }

  /** Number of open tunnels. */
  get count(): number {
    return this.#open.size;
  }

  /** Throws `overloaded`, `insufficient_capacity`, and the errors of dial(). */
  async open(target: TunnelTarget, facts: Readonly<Record<string, unknown>>): Promise<Tunnel> {
    const { clock, assertFree } = this.#deps;
    let opened: Tunnel | undefined;
    let isDisplaced = false;
    const giveBack = this.#take(target, () => {
      isDisplaced = true;
      opened?.close('displaced');
    });
    try {
      assertFree(FILES);
      const stream = await target.dial();
      // An error is always followed by `close`.
      stream.on('error', () => {});
      const tellEnd = await this.#log.begin(target, facts).catch((error) => {
        stream.destroy();
        throw error;
      });
      const onEnd = (tunnel: Tunnel) => {
        this.#open.delete(tunnel);
        giveBack();
        tellEnd(tunnel.told);
      };
      const tunnel = new Tunnel({ stream, target, onEnd, now: () => clock.monotonic() });
      this.#open.add(tunnel);
      opened = tunnel;
      if (isDisplaced) tunnel.close('displaced');
      return tunnel;
    } catch (error) {
      giveBack();
      throw error;
    }
  }

  /** Ends idle tunnels and those whose target is gone. Call every second or two. */
  async check(): Promise<void> {
    const now = this.#deps.clock.monotonic();
    const isOpen = new Map<string, boolean>();
    for (const tunnel of this.#open) {
      const { target } = tunnel;
      if (now - tunnel.movedAt > this.#deps.idleMs) tunnel.close('idle');
      if (!isOpen.has(target.id)) isOpen.set(target.id, await target.isOpen());
      if (isOpen.get(target.id) === false) tunnel.close('gone');
    }
    this.#log.check();
  }

  /** The result releases the slot; a second call does nothing. */
  #take({ id, accountId }: TunnelTarget, giveWay: () => void): () => void {
    if (this.#byAccount.of(accountId) >= MAX_PER_ACCOUNT || this.#byTarget.of(id) >= MAX_PER_TARGET) {
      const detail = `An account can have at most ${MAX_PER_ACCOUNT} tunnels, ${MAX_PER_TARGET} to one target`;
      throw new AppError('overloaded', detail, { hint: 'Close an unused tunnel' });
    }
    const leave = this.#slots.take(accountId, giveWay);
    if (leave === null) {
      throw new AppError('overloaded', 'All tunnels of this cloud are in use', { hint: 'Try again later' });
    }
    const slots = [leave, this.#byAccount.add(accountId), this.#byTarget.add(id)];
    return () => {
      for (const giveBack of slots) giveBack();
    };
  }
}

interface TunnelDeps {
  readonly stream: Duplex;
  readonly target: TunnelTarget;
  readonly onEnd: (tunnel: Tunnel) => void;
  /** Monotonic, ms. */
  readonly now: () => number;
}

/** One tunnel; a SocketSession of its WebSocket. */
class Tunnel {
  readonly #deps: TunnelDeps;
  #movedAt: number;
  #channel: TunnelChannel | null = null;
  #inBytes = 0;
  #outBytes = 0;
  /** Null: open, or closed by the client. */
  #ending: Ending | null = null;
  #isOver = false;
  readonly #writes: GatheredWrites;
  /** The client has ended its direction. */
  #hasEnded = false;

  constructor(deps: TunnelDeps) {
    this.#deps = deps;
    this.#writes = new GatheredWrites(deps.stream, () => {
      this.#movedAt = deps.now();
    });
    this.#movedAt = deps.now();
  }

  get target(): TunnelTarget {
    return this.#deps.target;
  }

  /** Time of the last transferred byte, ms of the monotonic clock. */
  get movedAt(): number {
    return this.#movedAt;
  }

  /** The facts for the closing event. */
  get told(): TunnelEnd {
    return { bytesIn: this.#inBytes, bytesOut: this.#outBytes, reason: this.#ending ?? 'closed' };
  }

  begin(channel: TunnelChannel): void {
    const { stream, target, now } = this.#deps;
    if (this.#isOver) {
      const ending = this.#ending ?? 'reset';
      channel.close(CLOSED[ending], REASONS[ending]);
      return;
    }
    this.#channel = channel;
    stream.on('data', (bytes: Buffer) => {
      this.#movedAt = now();
      this.#outBytes += bytes.length;
      target.sent(bytes.length);
      const taken = channel.write(bytes);
      if (taken === undefined) return;
      stream.pause();
      void taken.then(() => {
        this.#movedAt = now();
        stream.resume();
      });
    });
    // The stream was paused since its first response.
    stream.resume();
    const ended = () => channel.send('');
    // The target may have ended while the event was stored.
    if (stream.readableEnded) ended();
    else stream.once('end', ended);
    const closed = () => this.close(stream.readableEnded && stream.writableFinished ? 'ended' : 'reset');
    if (stream.destroyed) closed();
    else stream.once('close', closed);
  }

  receive(bytes: Uint8Array, isText: boolean): Promise<void> | undefined {
    const { stream, now } = this.#deps;
    if (isText && bytes.length === 0) {
      this.#hasEnded = true;
      this.#writes.end();
      return undefined;
    }
    if (isText || this.#hasEnded) {
      this.close('notUnderstood');
      return undefined;
    }
    if (stream.destroyed) return undefined;
    this.#movedAt = now();
    this.#inBytes += bytes.length;
    this.#writes.write(bytes);
    return this.#writes.length < WINDOW_BYTES ? undefined : this.#writes.whenTaken();
  }

  /** Ends the tunnel immediately; the client receives the reason. */
  close(ending: Ending): void {
    if (this.#isOver) return;
    this.#ending = ending;
    this.#channel?.close(CLOSED[ending], REASONS[ending]);
    this.end();
  }

  /** The WebSocket has ended. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    cut(this.#deps.stream);
    this.#deps.onEnd(this);
  }
}

/**
 * With a reset if the client did not end it properly, so that the target does not treat truncated
 * data as complete.
 */
function cut(stream: Duplex): void {
  const isEnding = stream.writableEnded && !stream.writableFinished;
  if (stream instanceof Socket && !stream.destroyed && !stream.connecting && !isEnding) {
    stream.resetAndDestroy();
  } else stream.destroy();
}
