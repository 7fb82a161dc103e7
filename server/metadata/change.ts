/**
 * A unit of work: the changes of a request, their rules, their consequences, and the response. It
 * is one commit: effect, refusals and the response under the caller's Idempotency-Key or operation
 * (decisions/0020).
 */
import { AppError } from '../platform/errors.ts';
import type { Bus, Forgotten } from './bus.ts';
import {
  CommitOutcomeUnknown,
  CommitRejected,
  type Counter,
  type Increment,
  type Metadata,
  type RowIdOf,
  type Statement,
} from './metadata.ts';

type Reason = CommitRejected['reason'];

/**
 * `retry`: another commit was first, so build the change again. `skip`: another commit has done the
 * same, so nothing is stored, without an error; for background work. A function: the error for the
 * caller, or 'retry'.
 */
export type Refusal = 'retry' | 'skip' | ((reason: Reason) => Decided | Promise<Decided>);
type Decided = Error | 'retry';

/** Records the response of a request in the commit with the effect. */
export interface Recorder {
  /**
   * Statements that record the response, so that a repeated request finds effect and response, or neither.
   */
  readonly record: (response: unknown) => readonly Statement[];
}

/** For background work without a caller: timers, and repairs at start. */
export const BACKGROUND: Recorder = { record: () => [] };

/** The entry of a call in the audit log, without its response. */
export interface CallEntry {
  /** `response`: of the commit, or undefined. */
  statements(response: unknown): readonly Statement[];
  /** Called once they are stored. */
  stored(): void;
}

/**
 * For a call with several commits: each runs with the recorder it is given, and the first one that is stored
 * contains the entry. Until then they run one at a time. undefined: the call has none.
 */
export function inFirstCommit(entry: CallEntry | undefined) {
  let isStored = false;
  let running: Promise<unknown> | undefined;
  return async <T>(work: (first: CallRecorder) => Promise<T>): Promise<T> => {
    while (!isStored && running !== undefined) await running.catch(() => {});
    if (isStored || entry === undefined) return work({ record: () => [] });
    let isAsked = false;
    const statements = (response: unknown) => {
      isAsked = true;
      return entry.statements(response);
    };
    const stored = () => {
      if (!isStored) entry.stored();
      isStored = true;
    };
    const own = work({ record: statements, entry: { statements, stored } });
    running = own;
    try {
      const done = await own;
      if (isAsked) stored();
      return done;
    } finally {
      running = undefined;
    }
  };
}

/** A recorder that also has the audit entry alone, for a call with several commits. */
export interface CallRecorder extends Recorder {
  readonly entry?: CallEntry | undefined;
}

export type InFirst = ReturnType<typeof inFirstCommit>;

/** Used recorders: a call makes only one change, so that a crash cannot leave half of it. */
const spent = new WeakSet<Recorder['record']>();

/** Maximum attempts to build a change when other commits are first. */
const MAX_TRIES = 50;

/** Changes report invalidated caches here. */
type ForgetBus = Pick<Bus, 'forgets'>;

/** A change, filled by `build`, which may run several times and must have no other effect. */
export class Change {
  readonly #statements: Statement[] = [];
  readonly #refusals: (Refusal | undefined)[] = [];
  readonly #increments: Increment[] = [];
  readonly #incrementRefusals: (Refusal | undefined)[] = [];
  readonly hooks: (() => void)[] = [];
  readonly #bus: ForgetBus | undefined;

  constructor(bus?: ForgetBus) {
    this.#bus = bus;
  }

  /** Adds a statement. The result represents the row id that it will insert. */
  add(statement: Statement, refused?: Refusal): RowIdOf {
    this.#refusals.push(refused);
    return { rowIdOf: this.#statements.push(statement) - 1 };
  }

  /** Adds statements with their own expectations, such as those of billing, and increments. */
  addAll(statements: readonly (Statement | Increment)[], refused?: Refusal): void {
    for (const statement of statements) {
      if ('amounts' in statement) this.#addIncrement(statement, refused);
      else this.add(statement, refused);
    }
  }

  /** Adds to a counter, after all statements. Refused if its row does not exist. */
  increment(counter: Counter, refused?: Refusal): void {
    this.#addIncrement(increment(counter), refused);
  }

  #addIncrement(one: Increment, refused: Refusal | undefined): void {
    this.#increments.push(one);
    this.#incrementRefusals.push(refused);
  }

  /** All statements, in the order of execution. */
  get steps(): Statement[] {
    return [...this.#statements, ...this.#increments];
  }

  /** The refusal of the step with this index. */
  refusalAt(index: number): Refusal | undefined {
    const past = index - this.#statements.length;
    return past < 0 ? this.#refusals[index] : this.#incrementRefusals[past];
  }

  /** Adds a statement that must change exactly one row. */
  expect(statement: Statement, refused: Refusal): void {
    this.add({ ...statement, expectChanges: 1 }, refused);
  }

  /**
   * Runs `work` once the change is stored, before the response, and also if the outcome is unknown:
   * to invalidate caches and notify watchers. It must not throw.
   */
  after(work: () => void): void {
    this.hooks.push(work);
  }

  /** Like after(): invalidates cache entries, here and at other nodes. */
  forgets(thing: Forgotten): void {
    const bus = this.#bus;
    if (bus === undefined) throw new Error('there is no bus to announce changed cache entries on');
    this.after(() => bus.forgets(thing));
  }
}

export class Changes {
  readonly #metadata: Metadata;
  readonly #bus: ForgetBus | undefined;

  /** `bus`: for changes that invalidate caches of nodes. */
  constructor(deps: { readonly metadata: Metadata; readonly bus?: ForgetBus }) {
    this.#metadata = deps.metadata;
    this.#bus = deps.bus;
  }

  /**
   * Builds a change and commits it with the response, which is the result of `build`. Rejects with
   * the error of a refusal, with `write_conflict` if other commits keep being first, with
   * CommitRejected if a statement without a refusal fails, and with the errors of
   * Metadata.commit(). Throws if the call has made a change before.
   */
  async run<T>(recorder: Recorder, build: (change: Change) => T | Promise<T>): Promise<T> {
    const { record } = recorder;
    if (spent.has(record)) throw new Error('a call has one change, and this would be its second');
    for (let tries = 1; ; tries++) {
      const change = new Change(this.#bus);
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
        const decided = typeof refusal === 'function' ? await refusal(error.reason) : (refusal ?? error);
        if (decided !== 'retry') throw decided;
        if (tries >= MAX_TRIES) throw tooManyTries(error);
        continue;
      }
      if (record !== BACKGROUND.record) spent.add(record);
      for (const hook of hooks) hook();
      return response;
    }
  }

  /** Stores background work; false: it was skipped. Rejects like run(). */
  async store(statements: readonly Statement[], refused?: Refusal): Promise<boolean> {
    let isStored = false;
    await this.run(BACKGROUND, (change) => {
      change.addAll(statements, refused);
      change.after(() => {
        isStored = true;
      });
    });
    return isStored;
  }
}

function tooManyTries(cause: unknown): AppError {
  return new AppError('write_conflict', 'Other requests kept changing the same resource', {
    hint: 'Send the request again',
    cause,
  });
}

/**
 * Buffers small facts in memory and writes them periodically, so that most need no write of their
 * own: last use, sent bytes. A crash loses unwritten ones.
 */
const STATEMENTS_PER_COMMIT = 500;

export interface WriteBehindDeps<K, V> {
  readonly changes: Changes;
  readonly statementOf: (key: K, value: V) => Statement;
  /** Combines two facts with the same key; default: the later replaces the earlier. */
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

  /** The fact for `key` that is not written yet; with `join`, the last part. */
  latest(key: K): V | undefined {
    return this.#pending.get(key) ?? this.#writing.get(key);
  }

  /** Writes all noted facts. Those that could not be stored are kept for the next call. */
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

const TURN_KEYS = { accounts: 'id', buckets: 'id', objects: 'id', plans: 'name', webhooks: 'id' } as const;

/**
 * Makes commits wait for each other. A statement that counts or finds rows, and refuses depending on the
 * result, is safe while one process writes. On PostgreSQL, neither of two nodes sees uncommitted rows of the
 * other: both must first change a common row, so that each statement sees the earlier one's rows. Place it
 * before the deciding statement. Changes no row if the key does not exist.
 */
export function turnAt(table: keyof typeof TURN_KEYS, key: number | string): Statement {
  const column = TURN_KEYS[table];
  return { sql: `UPDATE ${table} SET ${column} = ${column} WHERE ${column} = ?`, params: [key] };
}

/** Like turnAt(), for what has no row in common: commits of all accounts wait for each other. */
export function turnOfAll(): Statement {
  return { sql: 'UPDATE accounts SET id = id WHERE id = (SELECT min(id) FROM accounts)', params: [] };
}

/** Refuses if the row does not exist. */
export function increment({ table, id, add }: Counter): Increment {
  const columns = Object.keys(add);
  const sets = columns.map((column) => `${column} = ${column} + ?`).join(', ');
  return {
    sql: `UPDATE ${table} SET ${sets} WHERE id = ?`,
    params: [...Object.values(add), id],
    expectChanges: 1,
    amounts: columns.map((_, index) => index),
  };
}

const MOST_UNFIT = 8;

interface UnfitText {
  /** Such as `tags.0`. */
  readonly field: string;
  readonly message: string;
}

/**
 * Why the metadata cannot store this text; null: it can. PostgreSQL cannot store U+0000, and UTF-8 no lone
 * surrogate.
 */
function unfit(text: string): string | null {
  if (text.includes('\0')) return 'must not contain the NUL character (U+0000)';
  return text.isWellFormed() ? null : 'must be well-formed Unicode';
}

/**
 * The members whose value or name the metadata cannot store; the first eight. `value` is nested no
 * deeper than parsed JSON.
 */
export function unfitTexts(value: unknown, field = ''): UnfitText[] {
  if (typeof value === 'string') {
    const message = unfit(value);
    return message === null ? [] : [{ field, message }];
  }
  if (typeof value !== 'object' || value === null) return [];
  const found: UnfitText[] = [];
  for (const key of Object.keys(value)) {
    if (found.length >= MOST_UNFIT) break;
    const name = field === '' ? key : `${field}.${key}`;
    const message = unfit(key);
    if (message !== null) found.push({ field: name.replaceAll('\0', '\\0').toWellFormed(), message });
    else found.push(...unfitTexts((value as Record<string, unknown>)[key], name));
  }
  return found.slice(0, MOST_UNFIT);
}
