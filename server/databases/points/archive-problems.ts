/** The servers whose logs are not archived now, and the alarm once this lasts. */
import type { Alarms } from '../../platform/alarms.ts';
import type { Clock } from '../../platform/clock.ts';

/** Key of a problem of the target, which all servers share. */
const ALL = '';
const LATE_MS = 300_000;
const ALARM = 'continuous_protection_behind';

interface Problem {
  /** On the uptime clock. */
  readonly since: number;
  readonly what: string;
}

export class ArchiveProblems {
  readonly #clock: Pick<Clock, 'uptime'>;
  readonly #found = new Map<string, Problem>();

  constructor(clock: Pick<Clock, 'uptime'>) {
    this.#clock = clock;
  }

  note(key: string, error: unknown): void {
    const what = error instanceof Error ? error.message : String(error);
    const since = this.#found.get(key)?.since ?? this.#clock.uptime();
    this.#found.set(key, { since, what });
  }

  /** The target is unusable for all servers. */
  noteAll(error: unknown): void {
    this.note(ALL, error);
  }

  clear(key: string): void {
    this.#found.delete(key);
  }

  clearAll(): void {
    this.clear(ALL);
  }

  /** Why that server is not archived now; null: it is, or nothing is known. */
  of(key: string): string | null {
    return (this.#found.get(key) ?? this.#found.get(ALL))?.what ?? null;
  }

  /** Raises the alarm for a lasting problem, or clears it. */
  tell(alarms: Pick<Alarms, 'raise' | 'clear'>): void {
    const late = [...this.#found].filter(([, { since }]) => this.#clock.uptime() - since > LATE_MS);
    const [first] = late;
    if (first === undefined) return void alarms.clear(ALARM);
    const [key, { what }] = first;
    const whose = key === ALL ? 'any database server' : `${late.length} database servers, first ${key}`;
    alarms.raise(
      ALARM,
      `The log of ${whose} is not archived: ${what}`,
      'Databases keep running, but cannot be restored to the current time; recovery points are not affected',
    );
  }
}
