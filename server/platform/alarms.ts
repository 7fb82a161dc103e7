/** Faults an operator must see: shown in /api/system/status, /readyz and /metrics until cleared. */
import { type Clock, formatTime } from './clock.ts';
import { AppError } from './errors.ts';

export interface Alarm {
  /** Stable snake_case name. */
  readonly code: string;
  /** One sentence for the operator. */
  readonly detail: string;
  /** What to do about it. */
  readonly fix: string;
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
  raise(code: string, detail: string, fix: string): void {
    const since = this.#active.get(code)?.since ?? formatTime(this.#clock.now());
    this.#active.set(code, { code, detail, fix, since });
  }

  clear(code: string): void {
    this.#active.delete(code);
  }

  list(): Alarm[] {
    return [...this.#active.values()];
  }
}

/** The fix of a problem that nothing better is known about. */
export const SEE_LOG = 'Look at the log of Cloudlet for the reason; it tries again by itself';

/** The fix after a disk that failed to write. */
export const CHECK_DISK = 'Check the disk and what the kernel says of it (`dmesg`), then restart Cloudlet';

const READ_ONLY_ALARMS: ReadonlySet<string> = new Set(['metadata_write_failed', 'blob_fsync_failed']);

/** False after either store has failed to make a write durable; a restart ends that. */
export function isWritable(alarms: Alarms): boolean {
  return !alarms.list().some(({ code }) => READ_ONLY_ALARMS.has(code));
}

/**
 * Throws AppError `read_only`. The two stores refuse by themselves; this makes each heed the other's
 * failure.
 */
export function assertWritable(alarms: Alarms): void {
  if (isWritable(alarms)) return;
  throw new AppError('read_only', 'The store is read-only after a disk error', {
    hint: 'Check the disk, then restart Cloudlet; GET /api/system/status has the details',
  });
}
