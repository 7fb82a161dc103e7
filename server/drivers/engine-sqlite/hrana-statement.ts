/** Runs one statement on one connection and formats its result for Hrana. */
import type { SQLOutputValue, StatementResultingChanges, StatementSync } from 'node:sqlite';
import type { Counters } from '../engine-children/child-call.ts';
import type { Compiled, CompiledStatements } from './hrana-compiled.ts';
import { HranaError } from './hrana-error.ts';
import type { SqlStatement } from './hrana-sql.ts';
import { type Bindings, valueJson } from './hrana-values.ts';

/** Remaining size of a response. */
export interface ResponseBudget {
  /** Characters. */
  left: number;
}

export interface Counted {
  readonly affected: number;
  /** null unless the statement inserts or changes rows. */
  readonly lastRowid: string | null;
}

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

  /** Columns as JSON. Valid after the first row was requested, when SQLite notices schema changes. */
  columns(): string {
    const columns = this.#compiled.columns().map(({ name, type }) => columnJson(name, type));
    return `[${columns.join(',')}]`;
  }

  /** Valid after the last row. */
  count(): Counted {
    if (!this.#statement.counts) return { affected: 0, lastRowid: null };
    const { changes, rowid } = this.#ran === undefined ? this.#counted() : ofRun(this.#ran);
    const affected = Number(changes);
    this.#counters.rowsWritten += affected;
    return { affected, lastRowid: String(rowid) };
  }

  /** Ends it at any row. */
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

function columnJson(name: string, type: string | null): string {
  return `{"name":${JSON.stringify(name)},"decltype":${type === null ? 'null' : JSON.stringify(type)}}`;
}

/** A row as JSON. Throws HranaError when it exceeds the remaining size. */
export function rowJson(row: readonly SQLOutputValue[], budget: ResponseBudget): string {
  let json = '';
  for (const value of row) {
    // Oversized values are not converted to text, which alone could exhaust the memory.
    if (lengthOf(value) > budget.left) throw tooLarge();
    json += json === '' ? valueJson(value) : `,${valueJson(value)}`;
    if (json.length > budget.left) throw tooLarge();
  }
  budget.left -= json.length;
  return `[${json}]`;
}

function lengthOf(value: SQLOutputValue): number {
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 1;
}

/** Runs it to the end: the protocol's StmtResult. */
export function resultJson(execution: Execution, wantsRows: boolean, budget: ResponseBudget): string {
  const rows: string[] = [];
  let row = execution.nextRow();
  while (wantsRows && row !== undefined) {
    rows.push(rowJson(row, budget));
    row = execution.nextRow();
  }
  return `{"cols":${execution.columns()},"rows":[${rows.join(',')}],${countJson(execution.count())}}`;
}

/** Members of a JSON object. */
export function countJson({ affected, lastRowid }: Counted): string {
  return `"affected_row_count":${affected},"last_insert_rowid":${JSON.stringify(lastRowid)}`;
}

/** The protocol's DescribeResult, without running the statement. */
export function describeJson(statements: CompiledStatements, statement: SqlStatement): string {
  const compiled = statements.take(statement.text);
  try {
    const params = statement.params.map((name) => `{"name":${JSON.stringify(name ?? null)}}`);
    const columns = compiled.columns().map(({ name, type }) => columnJson(name, type));
    return (
      `{"params":[${params.join(',')}],"cols":[${columns.join(',')}],` +
      `"is_explain":${statement.explains},"is_readonly":${!statement.writes}}`
    );
  } finally {
    statements.release(statement.text, compiled, true);
  }
}

function tooLarge(): HranaError {
  return new HranaError(
    'RESPONSE_TOO_LARGE',
    'The result is too large for one response: fetch fewer rows (LIMIT), or use a cursor',
  );
}
