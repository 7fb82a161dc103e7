/**
 * Transactions that a client opens for its user, like `transaction()` and `batch()` of
 * @libsql/client: a BEGIN whose rows are not requested, and steps that depend on it. A statement of
 * the user may end such a transaction (ROLLBACK, INSERT OR ROLLBACK); later ones must not be saved
 * on their own. Hrana 3 has a condition for that, `not(is_autocommit)`. By default the client
 * speaks Hrana 2, where it cannot send this condition: such steps are treated as if they had it.
 */
import { HranaError } from './error.ts';
import { isObject } from './json.ts';
import type { SqlStatement } from './sql.ts';

type Boundary = SqlStatement['boundary'];

/** The transaction of one stream. */
export class UserTransaction {
  /** The client sends its user's statements for one transaction, whether it is open or not. */
  isBegun = false;
  /** The client itself sent BEGIN, in its own request. */
  #isBeginSent = false;

  /** Call it before an `execute` request. Throws HranaError `TRANSACTION_CLOSED`. */
  beforeExecute(
    boundary: Boundary,
    { isAutocommit, wantsRows }: { readonly isAutocommit: boolean; readonly wantsRows: boolean },
  ): void {
    if (boundary === null) this.assertOpen(isAutocommit);
    else {
      this.isBegun = false;
      this.#isBeginSent = boundary === 'begin' && !wantsRows;
    }
  }

  /** Call it before a `sequence` request. */
  beforeSequence(statements: readonly SqlStatement[], isAutocommit: boolean): void {
    const [first, second] = statements;
    if (second === undefined && first?.boundary != null) this.isBegun = false;
    else if (this.#isBeginSent && !isAutocommit) this.isBegun = true;
  }

  /** Throws HranaError `TRANSACTION_CLOSED`. */
  assertOpen(isAutocommit: boolean): void {
    if (!this.isBegun || !isAutocommit) return;
    throw new HranaError(
      'TRANSACTION_CLOSED',
      'The statement was not run: an earlier one (ROLLBACK, COMMIT, OR ROLLBACK) ended its transaction',
    );
  }
}

interface Step {
  readonly index: number;
  /** The step's condition, which is true. */
  readonly condition: unknown;
  readonly boundary: Boundary;
  readonly wantsRows: boolean;
}

/** Which steps of a batch belong to such a transaction. */
export class StepsOfTransaction {
  readonly #transaction: UserTransaction;
  /** An earlier request began the transaction. */
  readonly #isEarlier: boolean;
  /** Steps that began a transaction, which return no rows. */
  readonly #begins = new Set<number>();
  readonly #members = new Set<number>();

  constructor(transaction: UserTransaction) {
    this.#transaction = transaction;
    this.#isEarlier = transaction.isBegun;
  }

  /** False: the step belongs to a transaction that has ended. */
  mayRun({ index, condition, boundary, wantsRows }: Step, isAutocommit: boolean): boolean {
    const before = stepBefore(condition);
    if (typeof before === 'number' && this.#begins.has(before) && wantsRows) this.#transaction.isBegun = true;
    const isMember = this.#transaction.isBegun && this.#isIn(before);
    if (isMember) this.#members.add(index);
    const mayRun = !isMember || !isAutocommit;
    if (!wantsRows && boundary === 'begin') this.#begins.add(index);
    // The client ends the transaction itself.
    if (!wantsRows && boundary === 'end') this.#transaction.isBegun = false;
    return mayRun;
  }

  #isIn(before: ReturnType<typeof stepBefore>): boolean {
    if (before === 'other') return false;
    if (before === 'none') return this.#isEarlier;
    return this.#isEarlier || this.#begins.has(before) || this.#members.has(before);
  }
}

/** The step that must succeed before. */
function stepBefore(condition: unknown): number | 'none' | 'other' {
  if (condition == null) return 'none';
  return isObject(condition) && condition.type === 'ok' ? Number(condition.step) : 'other';
}
