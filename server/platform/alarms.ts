/**
 * Alarms: faults that an operator must see, shown in /api/system/status, /readyz and /metrics until cleared.
 */
import { type Clock, formatTime } from './clock.ts';
import { AppError } from './errors.ts';

export interface Alarm {
  /** Stable snake_case name. */
  readonly code: string;
  /** One sentence for the operator. */
  readonly detail: string;
  /** The fix. */
  readonly fix: string;
  /** `YYYY-MM-DD HH:MM:SS`. */
  readonly since: string;
}

/** Texts of an alarm that concerns some accounts. */
export interface AccountsDetail {
  readonly all: string;
  /** Details by account. */
  readonly of: ReadonlyMap<number, Pick<Alarm, 'detail' | 'fix'>>;
}

/** An alarm as published to other nodes. */
export interface ToldAlarm extends Alarm {
  /** Its texts for some accounts, by account id. */
  readonly accounts?: Readonly<Record<string, Pick<Alarm, 'detail' | 'fix'>>>;
}

export class Alarms {
  readonly #clock: Clock;
  readonly #active = new Map<string, Alarm>();
  readonly #ofAccounts = new Map<string, AccountsDetail['of']>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Raises an alarm; a second call with the same code only updates its text. */
  raise(code: string, said: string | AccountsDetail, fix: string): void {
    const detail = typeof said === 'string' ? said : said.all;
    if (typeof said === 'string') this.#ofAccounts.delete(code);
    else this.#ofAccounts.set(code, said.of);
    const since = this.#active.get(code)?.since ?? formatTime(this.#clock.now());
    this.#active.set(code, { code, detail, fix, since });
  }

  clear(code: string): void {
    this.#active.delete(code);
    this.#ofAccounts.delete(code);
  }

  list(): Alarm[] {
    return [...this.#active.values()];
  }

  /** All alarms, including their texts for accounts. */
  told(): ToldAlarm[] {
    return this.list().map((alarm) => {
      const of = this.#ofAccounts.get(alarm.code);
      return of === undefined ? alarm : { ...alarm, accounts: Object.fromEntries(of) };
    });
  }
}

/** The fix of a problem that has no more specific one. */
export const SEE_LOG = 'See the log of Cloudlet for the reason; it retries automatically';

/** The fix after a failed disk write. */
export const CHECK_DISK = 'Check the disk and the kernel log (`dmesg`), then restart Cloudlet';

const READ_ONLY_ALARMS: ReadonlyMap<string, string> = new Map([
  ['metadata_write_failed', 'after a disk error'],
  ['metadata_taken_over', 'since another Cloudlet took over the metadata database'],
  ['blob_fsync_failed', 'after a disk error'],
]);

/**
 * Since when writes are rejected: `after a disk error`. Undefined unless either store has failed to
 * make a write durable, or another Cloudlet has taken over the metadata; a restart clears that.
 */
export function whyReadOnly(alarms: Alarms): string | undefined {
  const reasons = alarms.list().flatMap(({ code }) => READ_ONLY_ALARMS.get(code) ?? []);
  return reasons[0];
}

/** False while whyReadOnly() has a reason. */
export function isWritable(alarms: Alarms): boolean {
  return whyReadOnly(alarms) === undefined;
}

/**
 * Throws AppError `read_only`. Each store refuses by itself; this makes each observe the other's failure too.
 */
export function assertWritable(alarms: Alarms): void {
  if (isWritable(alarms)) return;
  throw new AppError('read_only', 'The store is read-only until Cloudlet is restarted', {
    hint: 'The operator finds the reason in GET /api/system/status',
  });
}
