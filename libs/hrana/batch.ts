/** Batches: statements that run when the conditions on earlier ones hold. */
import { HranaError } from './error.ts';
import { type JsonObject, type Output, type Piece, protocolError } from './format.ts';
import { listOf, objectOf } from './json.ts';
import type { Stream } from './stream.ts';
import { StepsOfTransaction } from './user-transaction.ts';

const MAX_DEPTH = 64;

/** Results of earlier steps, for the conditions of later steps. */
class Outcomes {
  readonly #stream: Stream;
  readonly #steps: StepsOfTransaction;
  readonly #outcomes: ('ok' | 'error' | undefined)[] = [];

  constructor(stream: Stream) {
    this.#stream = stream;
    this.#steps = new StepsOfTransaction(stream.userTransaction);
  }

  /** undefined: skipped. */
  add(outcome: 'ok' | 'error' | undefined): void {
    this.#outcomes.push(outcome);
  }

  /** The statement of a step; undefined if its condition is false. */
  stmtOf(step: unknown): JsonObject | undefined {
    const { condition, stmt } = objectOf(step, 'A step');
    const given = objectOf(stmt, 'stmt');
    this.#stream.assertOpen();
    if (condition != null && !this.#holds(condition, 1)) return undefined;
    const { isAutocommit } = this.#stream;
    const boundary = this.#stream.boundaryOf(given);
    const at = { index: this.#outcomes.length, condition, boundary, wantsRows: given.want_rows !== false };
    return this.#steps.mayRun(at, isAutocommit) ? given : undefined;
  }

  #holds(condition: unknown, depth: number): boolean {
    const { type, step, cond, conds } = objectOf(condition, 'A condition');
    if (depth > MAX_DEPTH) throw protocolError(`Conditions are nested deeper than ${MAX_DEPTH} levels`);
    const inner = (one: unknown) => this.#holds(one, depth + 1);
    switch (type) {
      case 'ok':
      case 'error':
        return this.#outcomes[Number(step)] === type;
      case 'not':
        return !inner(cond);
      case 'and':
        return listOf(conds, 'conds').every(inner);
      case 'or':
        return listOf(conds, 'conds').some(inner);
      case 'is_autocommit':
        return this.#stream.isAutocommit;
      default:
        throw protocolError(`Unknown condition type ${JSON.stringify(type) ?? 'undefined'}`);
    }
  }
}

/** Steps of a batch. */
export function stepsOf(batch: unknown): readonly unknown[] {
  return listOf(objectOf(batch, 'batch').steps, 'steps');
}

/** The BatchResult of the protocol. */
export async function runBatch(stream: Stream, batch: unknown, output: Output): Promise<Piece> {
  const outcomes = new Outcomes(stream);
  const results: (Piece | null)[] = [];
  const errors: (Piece | null)[] = [];
  for (const step of stepsOf(batch)) {
    let result: Piece | null = null;
    let error: Piece | null = null;
    try {
      const stmt = outcomes.stmtOf(step);
      if (stmt !== undefined) result = await stream.execute(stmt, output);
      outcomes.add(stmt === undefined ? undefined : 'ok');
    } catch (thrown) {
      if (isMalformed(thrown)) throw thrown;
      error = output.error(thrown);
      outcomes.add('error');
    }
    results.push(result);
    errors.push(error);
  }
  return output.batch(results, errors);
}

/** Runs the steps and yields the protocol's CursorEntries, row by row. */
export async function* cursorEntries(
  stream: Stream,
  steps: readonly unknown[],
  output: Output,
): AsyncGenerator<Piece> {
  const outcomes = new Outcomes(stream);
  for (const [step, given] of steps.entries()) {
    try {
      const stmt = outcomes.stmtOf(given);
      if (stmt === undefined) {
        outcomes.add(undefined);
        continue;
      }
      const execution = await stream.open(stmt);
      try {
        let row = execution.nextRow();
        yield output.entry({ type: 'step_begin', step, columns: execution.columns() });
        while (row !== undefined && stmt.want_rows !== false) {
          output.renew();
          yield output.entry({ type: 'row', row: output.row(row) });
          stream.assertOpen();
          row = execution.nextRow();
        }
        yield output.entry({ type: 'step_end', count: execution.count() });
      } finally {
        stream.close();
      }
      outcomes.add('ok');
    } catch (error) {
      if (stream.ended !== undefined || isMalformed(error)) {
        yield output.entry({ type: 'error', error });
        return;
      }
      outcomes.add('error');
      yield output.entry({ type: 'step_error', step, error });
    }
  }
}

function isMalformed(error: unknown): boolean {
  return error instanceof HranaError && error.hranaCode === 'PROTOCOL_ERROR';
}
