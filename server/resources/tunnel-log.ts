/**
 * Tunnel events: who reached which port of which resource, when, and how many bytes passed. Tunnels of one
 * credential to one port that exceed the account's event rate are merged into one event.
 */
import type { Clock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { EventAllowance } from './event-allowance.ts';

export interface TunnelLogTarget {
  /** `vm-…` or `db-…`. */
  readonly id: string;
  readonly accountId: number;
  /** Writes the event. */
  announce(what: 'tunnel_opened' | 'tunnel_closed', facts: Readonly<Record<string, unknown>>): Promise<void>;
}

export interface TunnelEnd {
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly reason: string;
}

export interface TunnelLogDeps {
  readonly clock: Clock;
  readonly onError: (id: string, what: string, error: unknown) => void;
}

/** Events of an account without a pause. */
const BURST = 100;
/** Reserved for openings: closings wait, and later tunnels join the open entry. */
const RESERVE = 50;
/** Unreported ends per account; more than the tunnels it may have at once. */
const MAX_UNTOLD = 300;

interface Entry {
  readonly target: TunnelLogTarget;
  readonly facts: Readonly<Record<string, unknown>>;
  /** Monotonic, ms. */
  readonly beganAt: number;
  readonly written: Promise<void>;
  endedAt: number;
  open: number;
  tunnels: number;
  bytesIn: number;
  bytesOut: number;
  reason: string;
}

export class TunnelLog {
  readonly #deps: TunnelLogDeps;
  readonly #entries = new Map<string, Entry>();
  readonly #allowance: EventAllowance;

  constructor(deps: TunnelLogDeps) {
    this.#deps = deps;
    this.#allowance = new EventAllowance(deps.clock, BURST);
  }

  /**
   * Resolves once the event is stored, with a function to call at the tunnel's end. `facts`: port
   * and credential. Throws `overloaded` if the account has written too many events.
   */
  async begin(
    target: TunnelLogTarget,
    facts: Readonly<Record<string, unknown>>,
  ): Promise<(end: TunnelEnd) => void> {
    const key = JSON.stringify([target.id, facts]);
    const entry = this.#entries.get(key) ?? this.#open(key, target, facts);
    entry.open += 1;
    entry.tunnels += 1;
    try {
      await entry.written;
    } catch (error) {
      this.#entries.delete(key);
      throw error;
    }
    return ({ bytesIn, bytesOut, reason }) => {
      entry.open -= 1;
      entry.bytesIn += bytesIn;
      entry.bytesOut += bytesOut;
      Object.assign(entry, { reason, endedAt: this.#deps.clock.monotonic() });
      this.#close(key, entry);
    };
  }

  /** Writes the delayed ends. Call every second or two. */
  check(): void {
    for (const [key, entry] of this.#entries) this.#close(key, entry);
    this.#allowance.forget();
  }

  #open(key: string, target: TunnelLogTarget, facts: Readonly<Record<string, unknown>>): Entry {
    if (this.#untold(target.accountId) >= MAX_UNTOLD || !this.#allowance.take(target.accountId)) {
      const detail = 'This account opens tunnels to different ports, or with different keys, too often';
      throw new AppError('overloaded', detail, { hint: 'Try again in a few seconds' });
    }
    const beganAt = this.#deps.clock.monotonic();
    const written = target.announce('tunnel_opened', facts);
    const nothing = { open: 0, tunnels: 0, bytesIn: 0, bytesOut: 0, reason: '' };
    const entry: Entry = { target, facts, beganAt, endedAt: beganAt, written, ...nothing };
    this.#entries.set(key, entry);
    return entry;
  }

  #close(key: string, entry: Entry): void {
    const { target, facts, tunnels, bytesIn, bytesOut, reason } = entry;
    if (entry.open > 0 || !this.#allowance.take(target.accountId, RESERVE)) return;
    this.#entries.delete(key);
    const seconds = Math.round((entry.endedAt - entry.beganAt) / 1000);
    const end = { bytes_in: bytesIn, bytes_out: bytesOut, seconds, tunnels, reason };
    const told = target.announce('tunnel_closed', { ...facts, ...end });
    told.catch((error) => this.#deps.onError(target.id, 'storing the end of a tunnel failed', error));
  }

  #untold(accountId: number): number {
    let count = 0;
    for (const { target } of this.#entries.values()) if (target.accountId === accountId) count++;
    return count;
  }
}
