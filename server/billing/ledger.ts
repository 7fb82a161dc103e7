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
import { createHash } from 'node:crypto';
import { AppError } from '../errors.ts';
import type { Metadata, RowIdOf, Statement } from '../metadata/metadata.ts';
import type { Balance, BalanceRow, TransferRow } from './store.ts';
import { addToBalance, FIRST_PREV_HASH, insertTransfer, LedgerStore, takeFromBalance } from './store.ts';

/** `account:<id>`, `held:<id>`, `system:<name>`, or the account that an earlier statement of the same commit inserts. */
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

/**
 * What is hashed of a row: previous hash, number, id, debit, credit, amount, code, reference and time, each
 * as
 * `<bytes in UTF-8>:<text>,`, numbers in decimal. The same is computed in SQL when the row is inserted.
 */
function canonicalText(row: Omit<TransferRow, 'hash'>): string {
  const { prevHash, seq, id, debit, credit, amountMicro, code, reference, createdAt } = row;
  return [prevHash, seq, id, debit, credit, amountMicro, code, reference, createdAt]
    .map((field) => `${Buffer.byteLength(String(field))}:${field},`)
    .join('');
}

export interface LedgerHead {
  /** Number of the last transfer; 0 when there is none. */
  readonly seq: bigint;
  /** Its hash; 64 zeros when there is none. */
  readonly hash: string;
}

export interface LedgerCheck {
  /** What is wrong, in words that name the row; null when all is well. */
  readonly problem: string | null;
  /** The last row that was sound. */
  readonly head: LedgerHead;
}

interface Walked {
  /** What the sound rows moved into cached balances, net. */
  readonly movedMicro: bigint;
}

const PAGE_ROWS = 500;
const PAGE_ACCOUNTS = 100;

export class Ledger {
  readonly #store: LedgerStore;

  constructor(deps: { readonly metadata: Metadata }) {
    this.#store = new LedgerStore(deps);
  }

  /**
   * Walks the whole chain in pages and compares every cached balance with the sum of its transfers.
   * `anchor` is a head that was noted elsewhere before (a recovery point's): the chain must still hold it,
   * which is what finds rows cut off the end.
   */
  async verify(anchor?: LedgerHead): Promise<LedgerCheck> {
    const chain = await this.#verifyChain(anchor);
    if (chain.problem !== null) return { problem: chain.problem, head: chain.head };
    return { problem: await this.#balanceProblem(chain), head: chain.head };
  }

  async #verifyChain(anchor: LedgerHead | undefined): Promise<LedgerCheck & Walked> {
    let head: LedgerHead = { seq: 0n, hash: FIRST_PREV_HASH };
    let movedMicro = 0n;
    for (;;) {
      const rows = await this.#store.transfersAfter(head.seq, PAGE_ROWS);
      for (const row of rows) {
        const problem = rowProblem(row, head) ?? anchorProblem(row, anchor);
        if (problem !== null) return { problem, head, movedMicro };
        movedMicro += row.amountMicro * (sign(row.credit) - sign(row.debit));
        head = { seq: row.seq, hash: row.hash };
      }
      if (rows.length < PAGE_ROWS) break;
      // Others get their turn: a read runs on the calling thread.
      await new Promise((resolve) => setImmediate(resolve));
    }
    const cut = anchor !== undefined && anchor.seq > head.seq;
    return {
      problem: cut ? `transfers ${head.seq + 1n} to ${anchor.seq} are missing` : null,
      head,
      movedMicro,
    };
  }

  async #balanceProblem({ head, movedMicro }: LedgerCheck & Walked): Promise<string | null> {
    for (let after = 0; ; ) {
      const rows = await this.#store.balancesAfter(after, PAGE_ACCOUNTS);
      for (const row of rows) {
        after = row.accountId;
        const problem = cacheProblem(row);
        if (problem !== null) return problem;
      }
      if (rows.length < PAGE_ACCOUNTS) break;
      await new Promise((resolve) => setImmediate(resolve));
    }
    const imbalance = await this.#store.imbalance(head.seq, movedMicro);
    return imbalance === 0n ? null : `all balances and all transfers differ by ${imbalance} micro-credits`;
  }
}

/** 1 for a side whose balance is cached; 0 for a system side. */
function sign(side: string): bigint {
  return side.startsWith('system:') ? 0n : 1n;
}

function cacheProblem({ accountId, cachedMicro, summedMicro, cachedHeld, summedHeld }: BalanceRow) {
  if (cachedMicro !== summedMicro) {
    const shown = `account ${accountId} shows ${cachedMicro} micro-credits`;
    return `${shown}, its transfers sum up to ${summedMicro}`;
  }
  if (cachedHeld === summedHeld) return null;
  return `account ${accountId} shows ${cachedHeld} micro-credits held, its transfers sum up to ${summedHeld}`;
}

function rowProblem(row: TransferRow, head: LedgerHead): string | null {
  if (row.seq !== head.seq + 1n) return `transfer ${head.seq + 1n} is missing`;
  const hash = createHash('sha256').update(canonicalText(row)).digest('hex');
  if (row.hash !== hash) return `transfer ${row.seq} (${row.id}) was changed`;
  if (row.prevHash !== head.hash) return `transfer ${row.seq} (${row.id}) does not follow the one before it`;
  return null;
}

function anchorProblem(row: TransferRow, anchor: LedgerHead | undefined): string | null {
  if (anchor === undefined || row.seq !== anchor.seq || row.hash === anchor.hash) return null;
  return `transfer ${row.seq} (${row.id}) is not the one that was noted before`;
}
