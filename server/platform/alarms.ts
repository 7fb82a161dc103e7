/** Faults an operator must see: shown in /api/system/status, /readyz and /metrics until cleared. */
import type { Clock } from './clock.ts';
import { formatTime } from './clock.ts';

export interface Alarm {
  /** Stable snake_case name. */
  readonly code: string;
  /** One sentence for the operator. */
  readonly detail: string;
  /** `YYYY-MM-DD HH:MM:SS`. */
  readonly since: string;
}

export class Alarms {
  readonly #clock: Clock;
  readonly #active = new Map<string, Alarm>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Raises an alarm; a second call of the same code only renews its text. */
  raise(code: string, detail: string): void {
    const since = this.#active.get(code)?.since ?? formatTime(this.#clock.now());
    this.#active.set(code, { code, detail, since });
  }

  clear(code: string): void {
    this.#active.delete(code);
  }

  list(): Alarm[] {
    return [...this.#active.values()];
  }
}
