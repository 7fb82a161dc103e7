/** The clock, passed by the caller. */
export interface Clock {
  /** Wall time, ms since 1970. */
  now(): number;
  /** Monotonic time, ms, of arbitrary origin. */
  monotonic(): number;
}
