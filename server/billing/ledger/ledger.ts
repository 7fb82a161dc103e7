/**
 * Credits, by double entry: every transfer takes from one side and gives to the other, so the sum over
 * all sides is always 0. Rows are only ever inserted; a correction is a new transfer. Each row carries
 * the hash of the one before it, so that one changed, removed or put in between is found and named.
 *
 * Sides are `account:<id>`, what an account may spend, and `held:<id>`, what it has set aside for what runs:
 * both are cached in a row and never go below zero. `system:<name>` has no row and may: `system:grants` is
 * where given credits come from, `system:revenue-<service>` where charged ones go, `system:write-offs` pays
 * what an account no longer could.
 * Amounts are whole micro-credits (1 credit = 1,000,000), as bigint.
 */
import type { Metadata, RowIdOf, Statement } from '../../metadata/metadata.ts';
import { AppError } from '../../platform/errors.ts';
import { type LedgerHead, LedgerWalk } from './checks-walk.ts';
import { addToBalance, type Balance, insertTransfer, LedgerStore, takeFromBalance } from './ledger-store.ts';

/**
 * `account:<id>`, `held:<id>`, `system:<name>`, or the account that an earlier statement of the same commit
 * inserts.
 */
export type Side = string | RowIdOf;

export interface Transfer {
  /** Made and kept by the caller: a second commit with the same id is rejected as `unique`. */
  readonly id: string;
  /** Gives. */
  readonly debit: Side;
  /** Takes. */
  readonly credit: Side;
  /** More than 0; a number must be a safe integer. */
  readonly amountMicro: bigint | number;
  /** What kind of transfer: `signup_grant`, … */
  readonly code: string;
  /** What it was for, in words or as an id. */
  readonly reference: string;
  /** ms since 1970. */
  readonly at: number;
}

/**
 * Σ over all sides stays far inside 64 bits whatever is granted: 9.2 billion credits in one transfer at
 * most.
 */
const MAX_AMOUNT_MICRO = 2n ** 53n;
const SIDE = /^(?:(account|held):([1-9][0-9]{0,15})|system:[a-z][a-z0-9-]*)$/;

/** The row that a side is cached in; null: none. */
function balanceOf(side: Side): Balance | null {
  if (typeof side !== 'string') return { kind: 'account', accountId: side };
  const match = SIDE.exec(side);
  if (match === null) throw new TypeError(`${side} is not a side of the ledger`);
  const [, kind, id] = match;
  if (kind === undefined) return null;
  return { kind: kind === 'held' ? 'held' : 'account', accountId: Number(id) };
}

function assertText(name: string, text: string): void {
  if (text.includes('\0') || !text.isWellFormed()) {
    throw new AppError('invalid_request', `${name} must be text without NUL`, {
      fields: [{ field: name, message: 'must be text without NUL' }],
    });
  }
}

/**
 * The statements that book a transfer, to be appended to the commit that has the effect paid for.
 * The commit is rejected with CommitRejected `unique` when the id was booked before, and with
 * `expectation` when an account does not exist or would go below zero. Throws TypeError or RangeError
 * for sides and amounts that cannot be.
 */
export function transferStatements(transfer: Transfer): Statement[] {
  const { id, debit, credit, code, reference, at } = transfer;
  const amountMicro = BigInt(transfer.amountMicro);
  if (amountMicro <= 0n || amountMicro > MAX_AMOUNT_MICRO) {
    throw new RangeError(`a transfer of ${amountMicro} micro-credits cannot be`);
  }
  if (debit === credit) throw new TypeError('both sides of a transfer are the same');
  for (const [name, text] of Object.entries({ id, code, reference })) assertText(name, text);
  const giver = balanceOf(debit);
  const taker = balanceOf(credit);
  return [
    insertTransfer({ id, debit, credit, amountMicro, code, reference, createdAt: at }),
    ...(giver === null ? [] : [takeFromBalance(giver, amountMicro)]),
    ...(taker === null ? [] : [addToBalance(taker, amountMicro)]),
  ];
}

export interface LedgerCheck {
  /** What is wrong, in words that name the row; null when all is well. */
  readonly problem: string | null;
  /** The last row that was sound. */
  readonly head: LedgerHead;
}

export class Ledger {
  readonly #store: LedgerStore;

  constructor(deps: { readonly metadata: Metadata }) {
    this.#store = new LedgerStore(deps.metadata);
  }

  /**
   * Walks the whole chain and compares every cached balance with the sum of its transfers.
   * `anchor` is a head that was noted elsewhere before (a recovery point's): the chain must still hold it,
   * which is what finds rows cut off the end.
   */
  async verify(anchor?: LedgerHead): Promise<LedgerCheck> {
    const walk = new LedgerWalk({ store: this.#store });
    const problem =
      (await walk.advance()) ??
      (anchor === undefined ? null : await walk.anchorProblem(anchor)) ??
      (await walk.balanceProblem());
    return { problem, head: walk.head };
  }
}
