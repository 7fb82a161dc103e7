/** Statements that took long, known by looking at the server from time to time. */
import type { LogEntry } from './tenant-logs.ts';

/** From there on a statement is slow. */
export const SLOW_MS = 1000;
/** The most of the statement's text; characters. */
export const SLOW_TEXT = 1000;

/** For the log of its database. */
export const ENDED_STATEMENT = 'ERROR: a session was ended, as its statement ran for too long';

export interface RunningStatement {
  /** This statement's alone. */
  readonly key: string;
  readonly database: string;
  /** Now. */
  readonly at: string;
  /** So far. */
  readonly ms: number;
  readonly text: string;
}

export class SlowStatements {
  #running = new Map<string, RunningStatement>();

  /** Given those that are slow now, says which are over. How long one took is known to the last look. */
  note(now: readonly RunningStatement[]): LogEntry[] {
    const before = this.#running;
    this.#running = new Map(now.map((statement) => [statement.key, statement]));
    const over = [...before.values()].filter(({ key }) => !this.#running.has(key));
    return over.map(({ database, at, ms, text }) => ({
      database,
      at,
      text: `SLOW: ${(ms / 1000).toFixed(1)} s or more: ${text}`,
    }));
  }
}
