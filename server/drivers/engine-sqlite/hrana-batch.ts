/** Batches: statements that run when the conditions on earlier ones hold. */
import { errorJson, HranaError } from './hrana-error.ts';
import { type JsonObject, listOf, objectOf, protocolError } from './hrana-json.ts';
import { countJson, type ResponseBudget, rowJson } from './hrana-statement.ts';
import type { Stream } from './hrana-stream.ts';

const MAX_DEPTH = 64;

/** Results of the steps so far, for the conditions of later steps. */
class Outcomes {
  readonly #stream: Stream;
  /** undefined: skipped. */
  readonly #steps: ('ok' | 'error' | undefined)[] = [];

  constructor(stream: Stream) {
    this.#stream = stream;
  }

  add(outcome: 'ok' | 'error' | undefined): void {
    this.#steps.push(outcome);
  }

  /** The statement of a step; undefined when its condition does not hold. */
  stmtOf(step: unknown): JsonObject | undefined {
    const { condition, stmt } = objectOf(step, 'A step');
    const given = objectOf(stmt, 'stmt');
    if (condition == null) return given;
    this.#stream.assertOpen();
    return this.#holds(condition, 1) ? given : undefined;
  }

  #holds(condition: unknown, depth: number): boolean {
    const { type, step, cond, conds } = objectOf(condition, 'A condition');
    if (depth > MAX_DEPTH) throw protocolError(`Conditions are nested deeper than ${MAX_DEPTH} levels`);
    const inner = (one: unknown) => this.#holds(one, depth + 1);
    switch (type) {
      case 'ok':
      case 'error':
        return this.#steps[Number(step)] === type;
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
export async function runBatch(stream: Stream, batch: unknown, budget: ResponseBudget): Promise<string> {
  const outcomes = new Outcomes(stream);
  const results: string[] = [];
  const errors: string[] = [];
  for (const step of stepsOf(batch)) {
    let result = 'null';
    let error = 'null';
    try {
      const stmt = outcomes.stmtOf(step);
      if (stmt !== undefined) result = await stream.execute(stmt, budget);
      outcomes.add(stmt === undefined ? undefined : 'ok');
    } catch (thrown) {
      if (isMalformed(thrown)) throw thrown;
      error = errorJson(thrown);
      outcomes.add('error');
    }
    results.push(result);
    errors.push(error);
  }
  return `{"step_results":[${results.join(',')}],"step_errors":[${errors.join(',')}]}`;
}

/** Runs the steps and yields lines of JSON, row by row: the protocol's CursorEntries. */
export async function* cursorEntries(stream: Stream, steps: readonly unknown[], maxRow: number) {
  const outcomes = new Outcomes(stream);
  for (const [index, step] of steps.entries()) {
    try {
      const stmt = outcomes.stmtOf(step);
      if (stmt === undefined) {
        outcomes.add(undefined);
        continue;
      }
      const execution = await stream.open(stmt);
      try {
        let row = execution.nextRow();
        yield `{"type":"step_begin","step":${index},"cols":${execution.columns()}}\n`;
        while (row !== undefined && stmt.want_rows !== false) {
          yield `{"type":"row","row":${rowJson(row, { left: maxRow })}}\n`;
          stream.assertOpen();
          row = execution.nextRow();
        }
        yield `{"type":"step_end",${countJson(execution.count())}}\n`;
      } finally {
        stream.close();
      }
      outcomes.add('ok');
    } catch (thrown) {
      if (stream.ended !== undefined || isMalformed(thrown)) {
        yield `{"type":"error","error":${errorJson(thrown)}}\n`;
        return;
      }
      outcomes.add('error');
      yield `{"type":"step_error","step":${index},"error":${errorJson(thrown)}}\n`;
    }
  }
}

function isMalformed(error: unknown): boolean {
  return error instanceof HranaError && error.hranaCode === 'PROTOCOL_ERROR';
}
