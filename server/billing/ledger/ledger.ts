/**
 * Credits, by double entry: every transfer takes from one side and gives to the other, so the sum over all
 * sides is always 0. Rows are only ever inserted; a correction is a new transfer. Each row carries the hash
 * of the one before it, so that a changed, removed or inserted row is detected and named. Sides are
 * `account:<id>`, the available balance, and `held:<id>`, the balance on hold for running machines: both are
 * cached in a row and never fall below zero. `system:<name>` has no row and may: `system:grants` is the
 * source of granted credits, `system:revenue-<service>` the target of charges, `system:write-offs` pays what
 * an account no longer could. Amounts are whole micro-credits (1 credit = 1,000,000), as bigint.
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
  /** Chosen by the caller: a second commit with the same id is rejected as `unique`. */
  readonly id: string;
  /** The side that pays. */
  readonly debit: Side;
  /** The side that receives. */
  readonly credit: Side;
  /** Positive; a number must be a safe integer. */
  readonly amountMicro: bigint | number;
  /** The kind of transfer: `signup_grant`, … */
  readonly code: string;
  /** The purpose, in words or as an id. */
  readonly reference: string;
  /** ms since 1970. */
  readonly at: number;
}

/** Keeps Σ over all sides far inside 64 bits: at most 9.2 billion credits in one transfer. */
const MAX_AMOUNT_MICRO = 2n ** 53n;
const SIDE = /^(?:(account|held):([1-9][0-9]{0,15})|system:[a-z][a-z0-9-]*)$/;

/** The row that caches the balance of a side; null: none. */
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
    throw new AppError('invalid_request', `${name} must not contain NUL or lone surrogates`, {
      fields: [{ field: name, message: 'must not contain NUL or lone surrogates' }],
    });
  }
}

/**
 * The statements that book a transfer, to be appended to the commit with the effect that is paid for. The
 * commit is rejected with CommitRejected `unique` if the id was booked before, and with `expectation` if an
 * account does not exist or would fall below zero. Throws TypeError or RangeError for impossible sides and
 * amounts.
 */
export function transferStatements(transfer: Transfer): Statement[] {
  const { id, debit, credit, code, reference, at } = transfer;
  const amountMicro = BigInt(transfer.amountMicro);
  if (amountMicro <= 0n || amountMicro > MAX_AMOUNT_MICRO) {
    throw new RangeError(`a transfer cannot have ${amountMicro} micro-credits`);
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
  /** The problem, naming the row; null: none. */
  readonly problem: string | null;
  /** The last valid row. */
  readonly head: LedgerHead;
}

export class Ledger {
  readonly #store: LedgerStore;

  constructor(deps: { readonly metadata: Metadata }) {
    this.#store = new LedgerStore(deps.metadata);
  }

  /**
   * Walks the whole chain and compares every cached balance with the sum of its transfers. `anchor` is a head
   * recorded elsewhere before (in a recovery point): the chain must still contain it, which detects rows cut
   * off the end.
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
