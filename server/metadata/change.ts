/**
 * One unit of work: what a request changes, which rule may refuse it, what follows from it, and what the
 * caller is answered. All of it is one commit: effect, refusals and the response under the caller's
 * Idempotency-Key or operation (decisions/0020).
 */
import { AppError } from '../platform/errors.ts';
import {
  CommitOutcomeUnknown,
  CommitRejected,
  type Counter,
  type Increment,
  increment,
  isIncrement,
  type Metadata,
  type RowIdOf,
  type Statement,
} from './metadata.ts';

type Reason = CommitRejected['reason'];

/**
 * `retry`: somebody was faster, so build the change anew. `skip`: somebody did this already, so nothing is
 * stored and that is well; for work that nobody waits for. Else what the caller is told.
 */
export type Refusal = 'retry' | 'skip' | ((reason: Reason) => Error | Promise<Error>);

/** Whoever asked: the response is recorded for them in the commit that has the effect. */
export interface Recorder {
  /** Statements that record the response, so that a repetition finds effect and response, or neither. */
  readonly record: (response: unknown) => readonly Statement[];
}

/** For work that nobody waits for: what a timer or a start of Cloudlet finds to do. */
export const UNASKED: Recorder = { record: () => [] };

/** Those whose response is stored: what a call changes is one change, so that no crash comes between. */
const spent = new WeakSet<Recorder['record']>();

/** Times a change is built anew because others were faster, before we give up. */
const MAX_TRIES = 50;

/** What `build` fills. It may run several times, so it has no effect of its own. */
export class Change {
  readonly #statements: Statement[] = [];
  readonly #refusals: (Refusal | undefined)[] = [];
  readonly #increments: Increment[] = [];
  readonly #incrementRefusals: (Refusal | undefined)[] = [];
  readonly hooks: (() => void)[] = [];

  /** Adds a statement. The result stands for the row id that it will be given. */
  add(statement: Statement, refused?: Refusal): RowIdOf {
    this.#refusals.push(refused);
    return { rowIdOf: this.#statements.push(statement) - 1 };
  }

  /** Adds statements that say themselves what they expect, as those of billing do, and increments. */
  addAll(statements: readonly Statement[], refused?: Refusal): void {
    for (const statement of statements) {
      if (isIncrement(statement)) this.#addIncrement(statement, refused);
      else this.add(statement, refused);
    }
  }

  /** Adds to a counter, behind all statements. Refused when its row is gone. */
  increment(counter: Counter, refused?: Refusal): void {
    this.#addIncrement(increment(counter), refused);
  }

  #addIncrement(one: Increment, refused: Refusal | undefined): void {
    this.#increments.push(one);
    this.#incrementRefusals.push(refused);
  }

  /** All of it in the order in which it is stored. */
  get steps(): Statement[] {
    return [...this.#statements, ...this.#increments];
  }

  /** What was said of the step with this index. */
  refusalAt(index: number): Refusal | undefined {
    const past = index - this.#statements.length;
    return past < 0 ? this.#refusals[index] : this.#incrementRefusals[past];
  }

  /** Adds a statement that must change exactly one row. */
  expect(statement: Statement, refused: Refusal): void {
    this.add({ ...statement, expectChanges: 1 }, refused);
  }

  /**
   * Runs `work` once the change is stored, before the caller is answered, and also when nobody knows whether
   * it is: to forget what is cached, to tell who waits. It must not throw.
   */
  after(work: () => void): void {
    this.hooks.push(work);
  }
}

export class Changes {
  readonly #metadata: Metadata;

  constructor(deps: { readonly metadata: Metadata }) {
    this.#metadata = deps.metadata;
  }

  /**
   * Builds a change and commits it with the response, which is what `build` returns. Rejects with what a
   * refusal names, with `write_conflict` when others are faster again and again, with CommitRejected when a
   * statement refuses that names nothing, and with what Metadata.commit() rejects with. Throws when the call
   * has changed something before.
   */
  async run<T>(recorder: Recorder, build: (change: Change) => T | Promise<T>): Promise<T> {
    const { record } = recorder;
    if (spent.has(record)) throw new Error('a call has one change, and this would be its second');
    for (let tries = 1; ; tries++) {
      const change = new Change();
      const response = await build(change);
      const { hooks } = change;
      const statements = [...change.steps, ...record(response)];
      try {
        if (statements.length > 0) await this.#metadata.commit(statements);
      } catch (error) {
        if (error instanceof CommitOutcomeUnknown) for (const hook of hooks) hook();
        if (!(error instanceof CommitRejected)) throw error;
        const refusal = change.refusalAt(error.index);
        if (refusal === 'skip') return response;
        if (refusal === 'retry') {
          if (tries < MAX_TRIES) continue;
          throw tooManyTries(error);
        }
        throw refusal ? await refusal(error.reason) : error;
      }
      if (record !== UNASKED.record) spent.add(record);
      for (const hook of hooks) hook();
      return response;
    }
  }

  /** Stores what a timer, or a start of Cloudlet, finds to do; false: it was skipped. Rejects as run(). */
  async store(statements: readonly Statement[], refused?: Refusal): Promise<boolean> {
    let isStored = false;
    await this.run(UNASKED, (change) => {
      change.addAll(statements, refused);
      change.after(() => {
        isStored = true;
      });
    });
    return isStored;
  }
}

function tooManyTries(cause: unknown): AppError {
  return new AppError('write_conflict', 'Others changed the same thing again and again', {
    hint: 'Send the request again',
    cause,
  });
}

/**
 * Small facts that are kept in memory and written now and then, so that to note one costs no write: when
 * something was last used, how much was sent. A crash loses what was not written.
 */
const STATEMENTS_PER_COMMIT = 500;

export interface WriteBehindDeps<K, V> {
  readonly changes: Changes;
  readonly statementOf: (key: K, value: V) => Statement;
  /** Joins two facts about one key; without it the later one counts. */
  readonly join?: (earlier: V, later: V) => V;
}

export class WriteBehind<K, V> {
  readonly #deps: WriteBehindDeps<K, V>;
  #pending = new Map<K, V>();
  #writing = new Map<K, V>();

  constructor(deps: WriteBehindDeps<K, V>) {
    this.#deps = deps;
  }

  note(key: K, value: V): void {
    const { join } = this.#deps;
    const earlier = join && this.#pending.get(key);
    this.#pending.set(key, join && earlier !== undefined ? join(earlier, value) : value);
  }

  /** What is known of `key` and not written yet; when values are joined, the part noted last. */
  latest(key: K): V | undefined {
    return this.#pending.get(key) ?? this.#writing.get(key);
  }

  /** Writes what has gathered. What could not be stored is kept for the next call. */
  async flush(): Promise<void> {
    if (this.#pending.size === 0 || this.#writing.size > 0) return;
    this.#writing = this.#pending;
    this.#pending = new Map();
    const entries = [...this.#writing];
    let stored = 0;
    try {
      for (; stored < entries.length; stored += STATEMENTS_PER_COMMIT) {
        const part = entries.slice(stored, stored + STATEMENTS_PER_COMMIT);
        await this.#deps.changes.store(part.map(([key, value]) => this.#deps.statementOf(key, value)));
      }
    } finally {
      const noted = this.#pending;
      this.#pending = new Map(entries.slice(stored));
      this.#writing = new Map();
      for (const [key, value] of noted) this.note(key, value);
    }
  }
}
