/**
 * Stores batches over one connection to PostgreSQL: all commits of a batch in one transaction, or, when a
 * rule refuses one, each in its own savepoint. READ COMMITTED is enough, because every rule is an
 * expected number of rows or a constraint.
 */
import type pg from 'pg';
import type { CommitRejected, SqlValue, Statement, StatementResult } from '../../metadata/metadata.ts';
import { type Ready, type ReadyStatement, type Step, stepsOf } from './batch-plan.ts';
import { binaryArray } from './binary-arrays.ts';
import { codeOf, heldBack, prepared, toSent } from './connections.ts';
import type { RowIds } from './row-ids.ts';
import { manyRows, numbered } from './sql-texts.ts';

/** Outcome of a commit: its results, or why it was not stored. */
export type CommitOutcome = readonly StatementResult[] | CommitRefusal;

export interface CommitRefusal {
  readonly index: number;
  /** `fault`: a mistake in the statement itself. */
  readonly reason: CommitRejected['reason'] | 'fault';
  readonly detail: string;
}

/** Called before COMMIT, with the outcomes that count once it is stored. */
type OnCommit = (outcomes: readonly CommitOutcome[]) => void;

/** The server refused a whole batch; nothing was stored. */
export class BatchRefused extends Error {
  readonly code: string;

  constructor(code: string, cause: unknown) {
    super(String(cause), { cause });
    this.code = code;
  }
}

/** Another process took over the database; nothing of the batch was stored. */
export class TakenOver extends Error {}

/** SQLSTATE of rules (PostgreSQL, appendix A). */
const REASONS: Readonly<Record<string, CommitRejected['reason']>> = {
  '23505': 'unique',
  '23503': 'foreign_key',
  '23502': 'check',
  '23514': 'check',
};
/** A concurrent transaction caused the refusal: retrying may succeed. */
const AGAIN = ['40001', '40P01'];
const MAX_TRIES = 5;
/** The transaction failed before. */
const ABORTED = '25P02';
const INSERT = /^\s*INSERT\b/;
const LEDGER = /^\s*INSERT INTO ledger_transfers\b/;

type Result = pg.QueryResult;

interface Many {
  readonly text: string;
  /** Element types of the array params. */
  readonly types: readonly string[];
}

export interface BatchStoreDeps {
  readonly client: pg.Client;
  readonly ids: RowIds;
  /** Identifies this process in `store_batches`. */
  readonly writer: string;
  /** Called before a batch is retried, or its commits are sent one by one. */
  readonly onRetry: () => void;
}

export class BatchStore {
  readonly #onRetry: () => void;
  readonly #client: pg.Client;
  readonly #ids: RowIds;
  readonly #writer: string;
  /** Statements for many rows by those for one; null: none. */
  readonly #many = new Map<string, Many | null>();

  constructor({ client, ids, writer, onRetry }: BatchStoreDeps) {
    this.#client = client;
    this.#ids = ids;
    this.#writer = writer;
    this.#onRetry = onRetry;
  }

  /**
   * Stores the commits and records `number` as this writer's last batch, in one transaction.
   * Resolves with the outcome of each commit once the transaction is on disk. Rejects with
   * BatchRefused or TakenOver; and with pg's error if the connection is lost: it is then unknown
   * whether the transaction is stored, unless `onCommit` was not called. `onCommit` gets the outcomes
   * that count if it is: a rule may have refused some of the commits.
   */
  async store(
    commits: readonly (readonly Statement[])[],
    number: number,
    onCommit: OnCommit,
  ): Promise<readonly CommitOutcome[]> {
    await this.#ids.prepare(this.#client, commits);
    const ready = commits.map((statements) => this.#assign(statements));
    for (let tries = 1; ; tries++) {
      try {
        const together = await this.#together(ready, number, onCommit);
        if (together !== null) return together;
        this.#onRetry();
        return await this.#oneByOne(ready, number, onCommit);
      } catch (error) {
        const code = codeOf(error);
        const isLost = code === '' && !(error instanceof TakenOver);
        if (!isLost) await this.#client.query('ROLLBACK');
        if (code === '') throw error;
        if (!AGAIN.includes(code) || tries === MAX_TRIES) throw new BatchRefused(code, error);
        this.#onRetry();
      }
    }
  }

  /** A mistake in a statement must affect only its own commit. */
  #assign(statements: readonly Statement[]): Ready | CommitRefusal {
    try {
      return this.#ids.assign(statements);
    } catch (error) {
      return { index: 0, reason: 'fault', detail: String(error) };
    }
  }

  /** Null: a rule refused something, and nothing is stored. */
  async #together(
    ready: readonly (Ready | CommitRefusal)[],
    number: number,
    onCommit: OnCommit,
  ): Promise<CommitOutcome[] | null> {
    const commits = ready.filter(isReady);
    const steps = stepsOf(commits);
    await this.#learn(steps);
    const send = heldBack(this.#client);
    const begun = [this.#client.query('BEGIN'), ...this.#lockLedger(commits)];
    const answers = steps.map((step) => this.#send(step));
    const note = this.#note(number);
    send();
    const settled = await Promise.allSettled([...begun, ...answers.flat(), note]);
    const failed = firstError(settled);
    if (failed !== undefined) {
      const code = codeOf(failed);
      if (code === '' || AGAIN.includes(code)) throw failed;
      await this.#client.query('ROLLBACK');
      return null;
    }
    for (const [i, { expected }] of steps.entries()) {
      const results = await Promise.all(answers[i] as Promise<Result>[]);
      const changed = results.reduce((sum, { rowCount }) => sum + (rowCount ?? 0), 0);
      if (expected !== undefined && changed !== expected) {
        await this.#client.query('ROLLBACK');
        return null;
      }
    }
    assertHeld(await note);
    // Statements that need the number of changed rows declare an expectation.
    const outcomes = ready.map((commit) =>
      isReady(commit)
        ? commit.map(({ expectChanges = 0 }) => ({ changes: expectChanges, lastRowId: 0 }))
        : commit,
    );
    onCommit(outcomes);
    await this.#client.query('COMMIT');
    return outcomes;
  }

  async #oneByOne(
    ready: readonly (Ready | CommitRefusal)[],
    number: number,
    onCommit: OnCommit,
  ): Promise<CommitOutcome[]> {
    const begun = this.#client.query('BEGIN');
    const note = this.#note(number);
    await Promise.all([begun, ...this.#lockLedger(ready.filter(isReady)), note]);
    assertHeld(await note);
    const outcomes: CommitOutcome[] = [];
    for (const commit of ready) outcomes.push(isReady(commit) ? await this.#alone(commit) : commit);
    onCommit(outcomes);
    await this.#client.query('COMMIT');
    return outcomes;
  }

  async #alone(commit: Ready): Promise<CommitOutcome> {
    const send = heldBack(this.#client);
    const opened = this.#client.query('SAVEPOINT one_commit');
    const answers = commit.map(({ sql, params }) => this.#query(sql, params));
    send();
    const settled = await Promise.allSettled([opened, ...answers]);
    const failed = firstError(settled);
    const failure =
      failed === undefined
        ? null
        : refusalOf(failed, settled.findIndex((each) => each.status === 'rejected') - 1);
    // The first refusal is the reason, as in SQLite, which runs nothing after it.
    const answered = commit.slice(0, Math.max(0, failure?.index ?? commit.length));
    const refusal = (await unexpected(answered, answers)) ?? failure;
    if (refusal !== null) {
      await this.#client.query('ROLLBACK TO one_commit');
      return refusal;
    }
    const results = await Promise.all(answers);
    return results.map(({ rowCount }) => ({ changes: rowCount ?? 0, lastRowId: 0 }));
  }

  /** Serializes transfers: each hash includes the previous one. */
  #lockLedger(commits: readonly Ready[]): Promise<Result>[] {
    const hasTransfer = commits.some((commit) => commit.some(({ sql }) => LEDGER.test(sql)));
    return hasTransfer ? [this.#client.query('SELECT id FROM ledger_lock WHERE id = 1 FOR UPDATE')] : [];
  }

  /**
   * The row that shows the outcome of a lost COMMIT. Until the transaction ends, no other process
   * can take over, because that changes the same row.
   */
  #note(number: number): Promise<Result> {
    const sql = 'UPDATE store_batches SET last = ? WHERE writer = ? AND may_write = 1';
    return this.#query(sql, [number, this.#writer]);
  }

  /** Statements for many rows need the types of their params, from the server. */
  async #learn(steps: readonly Step[]): Promise<void> {
    const unknown = steps.filter(({ sql, rows }) => rows.length > 1 && !this.#many.has(sql));
    for (const { sql } of unknown) {
      if (manyRows(sql, ['text']) === null) {
        this.#many.set(sql, null);
        continue;
      }
      const name = `learn_${this.#many.size}`;
      try {
        await this.#client.query(`PREPARE ${name} AS ${numbered(sql)}`);
        const { rows } = await this.#client.query<{ types: string[] }>(
          `SELECT parameter_types::text[] AS types FROM pg_prepared_statements WHERE name = $1`,
          [name],
        );
        await this.#client.query(`DEALLOCATE ${name}`);
        const types = rows[0]?.types ?? [];
        const text = manyRows(sql, types);
        this.#many.set(sql, text === null ? null : { text, types });
      } catch (error) {
        if (codeOf(error) === '') throw error;
        this.#many.set(sql, null);
      }
    }
  }

  #send({ sql, rows, expected }: Step): Promise<Result>[] {
    // If two values name one row, a multi-row UPDATE changes it once: only an expectation notices.
    const isSafe = expected !== undefined || INSERT.test(sql);
    const many = rows.length > 1 && isSafe ? this.#many.get(sql) : null;
    if (many === null || many === undefined) return rows.map((params) => this.#query(sql, params));
    const columns = many.types.map((type, i) => {
      const column = rows.map((params) => params[i] as SqlValue);
      return binaryArray(type, column) ?? column.map(toSent);
    });
    return [this.#client.query({ ...prepared(many.text), values: columns })];
  }

  #query(sql: string, params: readonly SqlValue[]): Promise<Result> {
    return this.#client.query({ ...prepared(sql), values: params.map(toSent) });
  }
}

function isReady(commit: Ready | CommitRefusal): commit is Ready {
  return Array.isArray(commit);
}

function assertHeld({ rowCount }: Result): void {
  if (rowCount !== 1) throw new TakenOver();
}

/** The first error; later ones are its consequences. */
function firstError(settled: readonly PromiseSettledResult<unknown>[]): unknown {
  const errors = settled.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
  return errors.find((error) => codeOf(error) !== ABORTED) ?? errors[0];
}

async function unexpected(commit: Ready, answers: readonly Promise<Result>[]): Promise<CommitRefusal | null> {
  for (const [index, { expectChanges }] of (commit as readonly ReadyStatement[]).entries()) {
    const changes = (await answers[index])?.rowCount ?? 0;
    if (expectChanges === undefined || changes === expectChanges) continue;
    const detail = `${changes} rows changed, ${expectChanges} expected`;
    return { index, reason: 'expectation', detail };
  }
  return null;
}

/** Throws the error itself if it is not about a statement. */
function refusalOf(error: unknown, index: number): CommitRefusal {
  const code = codeOf(error);
  if (code === '' || AGAIN.includes(code)) throw error;
  return { index, reason: REASONS[code] ?? 'fault', detail: String(error) };
}
