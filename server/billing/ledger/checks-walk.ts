/**
 * Walks the hash chain of the ledger, incrementally, and keeps the sums of all transfers walked, so that
 * every cached figure can be compared with them at any time.
 */
import { hash as digest } from 'node:crypto';
import { type CachedRow, FIRST_PREV_HASH, type HashedRow, type LedgerStore } from './ledger-store.ts';

export interface LedgerHead {
  /** Number of the last transfer; 0 if there is none. */
  readonly seq: bigint;
  /** Hash of the last transfer; 64 zeros if there is none. */
  readonly hash: string;
}

export interface LedgerWalkDeps {
  readonly store: LedgerStore;
  /** Aborts the walk, which then rejects. */
  readonly signal?: AbortSignal | undefined;
}

/** One batch takes some milliseconds; other work runs between batches. */
const PAGE_ROWS = 1000;
const PAGE_ACCOUNTS = 500;
/** A commit between two reads of the same batch is possible only if the database is another process. */
const MAX_ATTEMPTS = 20;
/** The hashed text begins with this and the previous hash. */
const HASH_BEGINS = '64:';
/** The id's position in the hashed text: after the previous hash and the number. */
const ID_FIELD = 2;
const REVENUE = 'system:revenue-';
const WRITE_OFFS = 'system:write-offs';
/** End of the hashed text of a write-off: reference and time; see rating.ts. */
const WRITTEN_OFF_FOR = / of (account:\d+),\d+:\d+,$/;

export class LedgerWalk {
  readonly #store: LedgerStore;
  readonly #signal: AbortSignal | undefined;
  readonly #sides = new Map<string, Moved>();
  #seq = 0;
  #hash = FIRST_PREV_HASH;

  constructor(deps: LedgerWalkDeps) {
    this.#store = deps.store;
    this.#signal = deps.signal;
  }

  /** The last valid transfer. */
  get head(): LedgerHead {
    return { seq: BigInt(this.#seq), hash: this.#hash };
  }

  /**
   * Walks the new transfers. Returns the problem, naming the transfer, or null; then the whole ledger was
   * walked.
   */
  async advance(): Promise<string | null> {
    for (;;) {
      this.#signal?.throwIfAborted();
      // Begins with the last verified transfer, which must still exist.
      const again = this.#seq === 0 ? 0 : 1;
      const rows = await this.#store.hashedFrom(this.#seq + 1 - again, again + PAGE_ROWS);
      const problem = this.#recheckLast(rows[0]) ?? this.#verifyRows(rows.slice(again));
      if (problem !== null || rows.length < again + PAGE_ROWS) return problem;
      // Yields: a read runs on the calling thread.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Checks everything: chain, balances, usage and holds. */
  async wholeProblem(): Promise<string | null> {
    return (await this.balanceProblem()) ?? (await this.#allUsageProblem()) ?? (await this.holdsProblem());
  }

  async #allUsageProblem(): Promise<string | null> {
    for (let after = 0; ; ) {
      const ids = await this.#store.accountsAfter(after, PAGE_ACCOUNTS);
      for (const id of ids) {
        const problem = await this.usageProblem(id);
        if (problem !== null) return problem;
        after = id;
      }
      if (ids.length < PAGE_ACCOUNTS) return null;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async holdsProblem(): Promise<string | null> {
    const wrong = await this.#store.unequalHolds();
    if (wrong === undefined) return null;
    const { account_id, held_micro, holds_micro } = wrong;
    return `account ${account_id} shows ${held_micro} micro-credits on hold, but its holds sum up to ${holds_micro}`;
  }

  /** Checks that the walked chain contains a head recorded elsewhere: the problem, or null. */
  async anchorProblem({ seq, hash }: LedgerHead): Promise<string | null> {
    if (seq > BigInt(this.#seq)) return `transfers ${this.#seq + 1} to ${seq} are missing`;
    if (seq === 0n) return null;
    const [row] = await this.#store.hashedFrom(Number(seq), 1);
    if (row === undefined) return `transfer ${seq} is missing`;
    return row.hash === hash ? null : `transfer ${seq} (${nameOf(row)}) differs from the one recorded before`;
  }

  #recheckLast(row: HashedRow | undefined): string | null {
    if (this.#seq === 0) return null;
    if (row === undefined || Number(row.seq) !== this.#seq) return `transfer ${this.#seq} is missing`;
    return row.hash === this.#hash ? null : `transfer ${this.#seq} (${nameOf(row)}) was changed`;
  }

  #verifyRows(rows: readonly HashedRow[]): string | null {
    for (const row of rows) {
      const seq = Number(row.seq);
      if (seq !== this.#seq + 1) return `transfer ${this.#seq + 1} is missing`;
      if (digest('sha256', row.text, 'hex') !== row.hash)
        return `transfer ${seq} (${nameOf(row)}) was changed`;
      if (!(row.text.startsWith(HASH_BEGINS) && row.text.startsWith(this.#hash, HASH_BEGINS.length))) {
        return `transfer ${seq} (${nameOf(row)}) does not follow the one before it`;
      }
      this.#add(row);
      this.#seq = seq;
      this.#hash = row.hash;
    }
    return null;
  }

  #add({ debit, credit, amount_micro, text }: HashedRow): void {
    if (!debit.startsWith('system:')) {
      this.#moved(debit).add(-amount_micro, credit.startsWith(REVENUE) ? amount_micro : 0);
    } else if (debit === WRITE_OFFS) {
      this.#moved(WRITTEN_OFF_FOR.exec(text)?.[1] ?? '').add(0, amount_micro);
    } else if (credit === WRITE_OFFS) {
      this.#moved(WRITTEN_OFF_FOR.exec(text)?.[1] ?? '').add(0, -amount_micro);
    }
    if (credit.startsWith('system:')) return;
    this.#moved(credit).add(amount_micro, debit.startsWith(REVENUE) ? -amount_micro : 0);
  }

  #moved(side: string): Moved {
    let moved = this.#sides.get(side);
    if (moved === undefined) {
      moved = new Moved();
      this.#sides.set(side, moved);
    }
    return moved;
  }

  #micro(side: string): bigint {
    return this.#sides.get(side)?.micro ?? 0n;
  }

  #used(accountId: number): bigint {
    const of = (kind: string) => this.#sides.get(`${kind}:${accountId}`)?.used ?? 0n;
    return of('account') + of('held');
  }

  #total(): bigint {
    let total = 0n;
    for (const { micro } of this.#sides.values()) total += micro;
    return total;
  }

  /**
   * Compares every cached balance with its transfers. Returns the problem, naming the account, or null. Like
   * all checks here, it first walks new transfers.
   */
  async balanceProblem(): Promise<string | null> {
    for (let after = 0; ; ) {
      let count = 0;
      const problem = await this.#compare(async () => {
        const rows = await this.#store.cachedAfter(after, PAGE_ACCOUNTS);
        count = rows.length;
        const wrong = () => {
          for (const row of rows) {
            const found = this.#cacheProblem(row);
            if (found !== null) return found;
          }
          after = rows.at(-1)?.account_id ?? after;
          return null;
        };
        return { seq: rows[0]?.seq, wrong };
      });
      if (problem !== null) return problem;
      if (count < PAGE_ACCOUNTS) break;
      await new Promise((resolve) => setImmediate(resolve));
    }
    return this.#compare(async () => {
      const { seq, micro } = await this.#store.allCached();
      const wrong = () => {
        const difference = micro - this.#total();
        return difference === 0n
          ? null
          : `the sum of all balances differs from the sum of all transfers by ${difference} micro-credits`;
      };
      return { seq, wrong };
    });
  }

  /** Compares the cost of an account's windows with its booked charges. Returns the problem, or null. */
  usageProblem(accountId: number): Promise<string | null> {
    return this.#compare(async () => {
      const { seq, micro } = await this.#store.usedBy(accountId);
      const wrong = () => {
        const booked = this.#used(accountId);
        return micro === booked
          ? null
          : `the usage of account ${accountId} cost ${micro} micro-credits, but ${booked} were booked`;
      };
      return { seq, wrong };
    });
  }

  #cacheProblem(row: CachedRow): string | null {
    const name = `account ${row.account_id}`;
    const summed = this.#micro(`account:${row.account_id}`);
    if (BigInt(row.credits_micro) !== summed) {
      return `${name} shows ${row.credits_micro} micro-credits, but its transfers sum up to ${summed}`;
    }
    const held = this.#micro(`held:${row.account_id}`);
    if (BigInt(row.held_micro) === held) return null;
    return `${name} shows ${row.held_micro} micro-credits on hold, but its transfers sum up to ${held}`;
  }

  /** Compares only if no transfer was added between the walk and the read; tries again otherwise. */
  async #compare(
    read: () => Promise<{ readonly seq: number | bigint | undefined; readonly wrong: () => string | null }>,
  ): Promise<string | null> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const problem = await this.advance();
      if (problem !== null) return problem;
      const { seq, wrong } = await read();
      if (seq === undefined) return null;
      if (Number(seq) === this.#seq) return wrong();
    }
    // The database changes faster than it can be read: no problem is known.
    return null;
  }
}

/** The id of the transfer, from its hashed text. */
function nameOf({ text }: HashedRow): string {
  let rest = text;
  for (let field = 0; ; field++) {
    const colon = rest.indexOf(':');
    const size = Number(rest.slice(0, colon));
    const bytes = Buffer.from(rest.slice(colon + 1));
    if (field === ID_FIELD || colon < 0) return bytes.subarray(0, size).toString();
    rest = bytes.subarray(size + 1).toString();
  }
}

/** Sums of transfers on one side of an account, and the part of them that paid for usage. */
class Moved {
  /** Doubles while they are exact, which is nearly always and much faster. */
  #micro = 0;
  #used = 0;
  #largeMicro = 0n;
  #largeUsed = 0n;

  get micro(): bigint {
    return this.#largeMicro + BigInt(this.#micro);
  }

  get used(): bigint {
    return this.#largeUsed + BigInt(this.#used);
  }

  /** Negative `amount`: a debit; `used`: the part for usage. */
  add(amount: number | bigint, used: number | bigint): void {
    const micro = this.#micro + Number(amount);
    const usedMicro = this.#used + Number(used);
    const isExact = typeof amount === 'number' && typeof used === 'number';
    if (isExact && Number.isSafeInteger(micro) && Number.isSafeInteger(usedMicro)) {
      this.#micro = micro;
      this.#used = usedMicro;
      return;
    }
    this.#largeMicro += BigInt(amount);
    this.#largeUsed += BigInt(used);
  }
}
