/** Time, as the caller gives it. */
export interface Clock {
  /** Wall time, ms since 1970. */
  now(): number;
  /** Monotonic time, ms, of arbitrary origin. */
  monotonic(): number;
}
