/** Usage of an account's server, as of the last query. */
import type { Clock } from '../../platform/clock.ts';
import { UseMarks } from './processes/server-rounds.ts';
import type { ServerUse } from './sql-engine.ts';

const NO_USE: ServerUse = { sessions: 0, busy: 0, runsMs: 0, done: new Map(), users: new Map() };

export class ServerUsage {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #marks = new UseMarks();
  #now: ServerUse = NO_USE;
  #askedAt = 0;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  get now(): ServerUse {
    return this.#now;
  }

  note(use: ServerUse): void {
    this.#now = use;
    this.#askedAt = this.#clock.monotonic();
    this.#marks.note(use.done);
  }

  /** The server no longer runs. */
  ended(): void {
    this.#now = NO_USE;
  }

  /** Start of the oldest statement or transaction, monotonic ms; null: none. */
  get busySince(): number | null {
    return this.#now.busy > 0 ? this.#askedAt - this.#now.runsMs : null;
  }

  /** Names of databases used since the last call. */
  takeActive(): readonly string[] {
    return this.#marks.take();
  }
}
