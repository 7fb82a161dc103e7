/**
 * Limits of responses that are stored for 24 h, under an Idempotency-Key or as the outcome of an
 * operation: they share one file with the commits of every account.
 */
import type { Awaitable, Metadata, Statement } from '../metadata/metadata.ts';

export interface StoredResponse {
  readonly status: number;
  readonly body: string;
}

/** Maximum bytes of a response that are kept. */
const MAX_ANSWER_BYTES = 16 * 1024;
/** Maximum bytes kept per account and kind; above it, the oldest are deleted. */
export const MAX_ACCOUNT_BYTES = 64 * 2 ** 20;
/** Bytes of a row besides its texts: times, numbers, index entries. */
export const ROW_BYTES = 128;
/** Maximum rows deleted per commit, so that other commits are not delayed. */
export const TRIMMED_AT_ONCE = 2000;

const MAX_DETAIL = 1000;
const COUNTED_AT_ONCE = 200;

/** Stored instead of a response that is too large. */
const NOT_KEPT = JSON.stringify({
  response_not_kept: true,
  message:
    'The call succeeded. Its response was larger than 16 KiB and was not stored. Read the resource instead',
});

/** The response as stored: a large one becomes a short one with the same status. */
export function keptForm({ status, body }: StoredResponse): StoredResponse {
  if (Buffer.byteLength(body) <= MAX_ANSWER_BYTES) return { status, body };
  return { status, body: status < 400 ? NOT_KEPT : shortProblem(body) };
}

/** Problem details without the parts that may be long. */
function shortProblem(body: string): string {
  const { type, title, status, code, request_id, detail, error } = JSON.parse(body);
  const cut = (text: unknown) => (typeof text === 'string' ? text.slice(0, MAX_DETAIL) : undefined);
  return JSON.stringify({ type, title, status, detail: cut(detail), code, request_id, error: cut(error) });
}

/** Maximum stored responses per account. */
export interface Kept {
  readonly rows: number;
  readonly bytes: number;
}

/** Decides when to delete an account's oldest rows: after each added share of the limits. */
export class TrimSchedule {
  readonly #every: Kept;
  readonly #added = new Map<number, { rows: number; bytes: number }>();

  /** `kept` is exceeded by at most one percent and one row. */
  constructor({ rows, bytes }: Kept) {
    this.#every = { rows: Math.max(1, Math.floor(rows / 100)), bytes: Math.max(1, Math.floor(bytes / 100)) };
  }

  /** Call once per row. The first call after the start returns true: stored rows are unknown. */
  isDue(accountId: number, bytes = 0): boolean {
    const added = this.#added.get(accountId);
    const isFull = added === undefined || added.rows >= this.#every.rows || added.bytes >= this.#every.bytes;
    const before = isFull ? { rows: 0, bytes: 0 } : added;
    this.#added.set(accountId, { rows: before.rows + 1, bytes: before.bytes + bytes });
    return isFull;
  }
}

interface UncountedRow {
  readonly account_id: number;
  readonly bytes: number;
}

/** Rows of one kind of responses, with the queries for countEarlier(). */
export interface EarlierRows<Row extends UncountedRow> {
  readonly metadata: Pick<Metadata, 'commit'>;
  readonly store: {
    uncounted(limit: number): Awaitable<Row[]>;
    count(row: Row): Statement;
    deleteBeyondBytes(accountId: number, maxBytes: number): Statement;
  };
  readonly shorten: (row: Row) => Promise<Statement>;
  /** Maximum bytes kept per account. */
  readonly maxBytes: number;
}

/**
 * Counts rows of a version that counted no bytes, shortens those that would not be stored today,
 * and deletes those beyond the limit, in portions.
 */
export async function countEarlier<Row extends UncountedRow>(earlier: EarlierRows<Row>): Promise<void> {
  const { metadata, store, shorten, maxBytes } = earlier;
  const accounts = new Set<number>();
  for (;;) {
    const rows = await store.uncounted(COUNTED_AT_ONCE);
    if (rows.length === 0) break;
    for (const { account_id } of rows) accounts.add(account_id);
    const large = rows.filter(({ bytes }) => bytes > MAX_ANSWER_BYTES);
    for (const row of large) await metadata.commit([await shorten(row)]);
    const small = rows.filter(({ bytes }) => bytes <= MAX_ANSWER_BYTES);
    await metadata.commit(small.map((row) => store.count(row)));
  }
  for (const accountId of accounts) {
    const trim = store.deleteBeyondBytes(accountId, maxBytes);
    while (((await metadata.commit([trim]))[0]?.changes ?? 0) > 0);
  }
}
