/** Work that repeats while a database server is up, and tracking of its use. */

export interface Round {
  readonly everyMs: number;
  readonly work: () => Promise<void>;
}

/** Runs each kind of periodic work independently, never concurrently with itself. */
export class ServerRounds {
  readonly #timers: readonly NodeJS.Timeout[];
  readonly #underWay = new Map<Round, Promise<void>>();
  readonly #isUp: () => boolean;

  constructor(isUp: () => boolean, rounds: readonly Round[]) {
    this.#isUp = isUp;
    this.#timers = rounds.map((round) => setInterval(() => this.#run(round), round.everyMs));
    for (const timer of this.#timers) timer.unref();
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#underWay.values());
  }

  #run(round: Round): void {
    if (this.#underWay.has(round) || !this.#isUp()) return;
    const running = round
      .work()
      // The server has ended, which its owner notices.
      .catch(() => {})
      .finally(() => this.#underWay.delete(round));
    this.#underWay.set(round, running);
  }
}

/** Detects active databases by their activity counters. */
export class UseMarks {
  #before: ReadonlyMap<string, string> = new Map();
  #active = new Set<string>();

  /** A text for each database that changes when it is used. */
  note(now: ReadonlyMap<string, string>): void {
    for (const [name, done] of now) if (this.#before.get(name) !== done) this.#active.add(name);
    this.#before = now;
  }

  /** Databases used since the last call. */
  take(): string[] {
    const active = [...this.#active];
    this.#active = new Set();
    return active;
  }
}
