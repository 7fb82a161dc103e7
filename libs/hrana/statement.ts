/** Runs one statement on one connection. */
import type { SQLOutputValue, StatementResultingChanges, StatementSync } from 'node:sqlite';
import type { Compiled, CompiledStatements } from './compiled.ts';
import type { Counters } from './database.ts';
import type { Column, Counted, Description, Output, Piece } from './format.ts';
import type { SqlStatement } from './sql.ts';
import type { Bindings } from './values.ts';

/** A compiled and bound statement, to be stepped through row by row. */
export class Execution {
  readonly #statements: CompiledStatements;
  readonly #statement: SqlStatement;
  readonly #counters: Counters;
  readonly #compiled: Compiled;
  readonly #bindings: SqlArguments;
  readonly #rows: Iterator<SQLOutputValue[]> | undefined;
  #ran: StatementResultingChanges | undefined;
  #isClosed = false;

  /** Does not step yet. Throws errors of SQLite or the bindings. */
  constructor(
    statements: CompiledStatements,
    deps: { readonly statement: SqlStatement; readonly bindings: Bindings; readonly counters: Counters },
  ) {
    this.#statements = statements;
    this.#statement = deps.statement;
    this.#counters = deps.counters;
    this.#bindings = deps.bindings as SqlArguments;
    deps.counters.statements++;
    this.#compiled = statements.take(deps.statement.text);
    if (this.#compiled.columns().length === 0) return;
    try {
      this.#rows = this.#compiled.iterate(...this.#bindings) as unknown as Iterator<SQLOutputValue[]>;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** undefined after the last row. */
  nextRow(): SQLOutputValue[] | undefined {
    if (this.#rows === undefined) {
      this.#ran ??= this.#compiled.run(...this.#bindings);
      return undefined;
    }
    const { done, value } = this.#rows.next();
    if (done) return undefined;
    this.#counters.rowsReturned++;
    return value;
  }

  /** Valid after the first row was requested, when SQLite notices schema changes. */
  columns(): readonly Column[] {
    return this.#compiled.columns();
  }

  /** Valid after the last row. */
  count(): Counted {
    if (!this.#statement.counts) return { affected: 0, lastRowid: null };
    const { changes, rowid } = this.#ran === undefined ? this.#counted() : ofRun(this.#ran);
    const affected = Number(changes);
    this.#counters.rowsWritten += affected;
    return { affected, lastRowid: BigInt(rowid) };
  }

  /** May stop at any row. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#rows?.return?.();
    this.#statements.release(this.#statement.text, this.#compiled, this.#bindings.every(isLight));
  }

  #counted() {
    const counting = this.#statements.take(COUNTED);
    const [changes, rowid] = counting.get() as unknown as [bigint, bigint];
    this.#statements.release(COUNTED, counting, true);
    return { changes, rowid };
  }
}

function ofRun({ changes, lastInsertRowid: rowid }: StatementResultingChanges) {
  return { changes, rowid };
}

/** Named arguments are not inspected. */
function isLight(value: unknown): boolean {
  if (typeof value === 'string' || value instanceof Uint8Array) return value.length <= LIGHT_LENGTH;
  return value === null || typeof value !== 'object';
}

const LIGHT_LENGTH = 1_000;

type SqlArguments = Parameters<StatementSync['iterate']>;

const COUNTED = 'SELECT changes(), last_insert_rowid()';

/** Runs it to the end. Throws HranaError `RESPONSE_TOO_LARGE`. */
export function resultOf(execution: Execution, wantsRows: boolean, output: Output): Piece {
  const rows: Piece[] = [];
  let row = execution.nextRow();
  while (wantsRows && row !== undefined) {
    rows.push(output.row(row));
    row = execution.nextRow();
  }
  return output.result(execution.columns(), rows, execution.count());
}

/** Describes a statement without running it. */
export function describeStatement(statements: CompiledStatements, statement: SqlStatement): Description {
  const compiled = statements.take(statement.text);
  try {
    const params = statement.params.map((name) => name ?? null);
    const { explains, writes } = statement;
    return { params, columns: compiled.columns(), explains, writes };
  } finally {
    statements.release(statement.text, compiled, true);
  }
}
