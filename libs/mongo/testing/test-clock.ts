/** A clock that only moves when advanced. */
import type { Clock } from '../clock.ts';

export class TestClock implements Clock {
  #passed = 0;

  now(): number {
    return Date.UTC(2026, 0, 1) + this.#passed;
  }

  monotonic(): number {
    return this.#passed;
  }

  /** Advanced time, even if a test replaced `monotonic`. */
  uptime(): number {
    return this.#passed;
  }

  advance(ms: number): void {
    this.#passed += ms;
  }
}
