/** The only caller of the system's time. Times are milliseconds since 1970, UTC. */
import { invalidField } from './errors.ts';

export interface Clock {
  /** Wall time, ms. May jump. */
  now(): number;
  /** Monotonic time, ms, of arbitrary origin. Never jumps. */
  monotonic(): number;
  /** Monotonic, ms, and shared by all processes until the host reboots. */
  uptime(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  // Its origin is documented as arbitrary; on Linux it is CLOCK_MONOTONIC, which starts at boot.
  uptime: () => Number(process.hrtime.bigint() / 1000n) / 1000,
};

/** A clock that only moves when advanced. */
export class FakeClock implements Clock {
  #now: number;
  #monotonic = 0;

  constructor(nowMs = Date.UTC(2026, 0, 1)) {
    this.#now = nowMs;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  uptime(): number {
    return this.#monotonic;
  }

  /** Advances both clocks, as real time does. */
  advance(ms: number): void {
    this.#now += ms;
    this.#monotonic += ms;
  }

  /** Sets only the wall clock, as an operator or NTP does. */
  jump(ms: number): void {
    this.#now += ms;
  }
}

let lastSecond = Number.NaN;
let lastText = '';

/** `YYYY-MM-DD HH:MM:SS`, UTC: the format of every time in a record. */
export function formatTime(ms: number): string {
  const second = Math.floor(ms / 1000);
  // Most formatted times are current, thousands of them within the same second.
  if (second !== lastSecond) {
    lastText = new Date(ms).toISOString().slice(0, 19).replace('T', ' ');
    lastSecond = second;
  }
  return lastText;
}

/** Like formatTime; null for null. */
export function formatTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : formatTime(ms);
}

const TIME = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?$/i;
const TIME_MESSAGE = 'must be YYYY-MM-DD HH:MM:SS (UTC) or RFC 3339';

/** Parses a time of a request, ms since 1970. Throws `invalid_request` that names the field. */
export function readTime(field: string, text: string): number {
  const [, day, time, zone = 'Z'] = TIME.exec(text) ?? [];
  const ms = day === undefined ? Number.NaN : Date.parse(`${day}T${time}${zone.toUpperCase()}`);
  // Date.parse turns 30 February into 2 March.
  if (Number.isNaN(ms) || formatTime(Date.parse(`${day}T00:00:00Z`)).slice(0, 10) !== day) {
    throw invalidField(field, TIME_MESSAGE);
  }
  return ms;
}
