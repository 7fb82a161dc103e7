/**
 * Ranges of rows are sealed, each with the hash of the one before: a row that is changed or removed later is
 * found. A row belongs to the range that was sealed after it was stored, whatever its id, since ids of late
 * commits lie between those of earlier ones.
 */
import { createHash } from 'node:crypto';
import type { Changes } from '../metadata/change.ts';
import type { Clock } from '../platform/clock.ts';
import type { AuditRow, AuditStore, SealRow } from './store.ts';

export interface SealsDeps {
  readonly changes: Changes;
  readonly store: AuditStore;
  readonly clock: Clock;
  /** Default: 365 days. */
  readonly keptMs?: number;
  /** Default: 4 GiB. */
  readonly keptBytes?: number;
}

/** Rows of a range at most, and the age of the oldest that is not sealed. */
const RANGE_ROWS = 2000;
const RANGE_MS = 10 * 60_000;
const SEALS_AT_ONCE = 500;
const KEPT_MS = 365 * 24 * 3_600_000;
const KEPT_BYTES = 4 * 2 ** 30;
/** Bytes of a row beside its texts: numbers, and its entries in indexes. */
const ROW_BYTES = 120;
/** The head before the first range. */
const FIRST_HEAD = '0'.repeat(64);

export interface AuditVerification {
  readonly ok: boolean;
  /** Ranges, and rows that are in them and were read. */
  readonly ranges: number;
  readonly rows: number;
  /** Ranges whose rows became too old: only their hashes are left. */
  readonly removed: number;
  /** Rows without a seal yet. */
  readonly unsealed: number;
  readonly head: { readonly range: number; readonly hash: string } | null;
  /** The first fault found; null: none. */
  readonly fault: string | null;
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

function textOf(row: AuditRow): string {
  const { id, at, account_id, actor_id, actor, via, credential, address, agent, action } = row;
  const { target, outcome, status, code, request_id, detail, times } = row;
  return JSON.stringify([
    ...[id, at, account_id, actor_id, actor, via, credential, address, agent, action],
    ...[target, outcome, status, code, request_id, detail, times],
  ]);
}

function digestOf(rows: readonly AuditRow[]): { readonly digest: string; readonly bytes: number } {
  const hash = createHash('sha256');
  let bytes = 0;
  for (const row of rows) {
    const text = textOf(row);
    bytes += Buffer.byteLength(text) + ROW_BYTES;
    hash.update(text).update('\n');
  }
  return { digest: hash.digest('hex'), bytes };
}

function headAfter(before: string, { id, rows, digest }: Pick<SealRow, 'id' | 'rows' | 'digest'>): string {
  return sha256(`${before}\n${id}\n${rows}\n${digest}`);
}

export class Seals {
  readonly #deps: SealsDeps;
  #isStopped = false;

  constructor(deps: SealsDeps) {
    this.#deps = deps;
  }

  /** Stops a running sweep soon. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Seals what is there. One process of a cluster does this at a time; of two only one has its way. */
  async seal({ all = false } = {}): Promise<void> {
    const { changes, store, clock } = this.#deps;
    while (!this.#isStopped) {
      const rows = await store.unsealed(RANGE_ROWS);
      const [first] = rows;
      const last = rows.at(-1);
      if (first === undefined || last === undefined) return;
      const isDue = rows.length === RANGE_ROWS || rows.some(({ at }) => clock.now() - at >= RANGE_MS);
      if (!isDue && !all) return;
      const before = await store.lastSeal();
      const times = rows.map(({ at }) => Number(at));
      const range = { id: Number(before?.id ?? 0) + 1, rows: rows.length, ...digestOf(rows) };
      const seal: SealRow = {
        ...range,
        first_at: Math.min(...times),
        last_at: Math.max(...times),
        head: headAfter(before?.head ?? FIRST_HEAD, range),
        sealed_at: clock.now(),
        removed_at: null,
      };
      // Skipped when a row has come in between: the next time it is in the range.
      if (!(await changes.store(store.addSeal(seal, last.id), 'skip'))) return;
      if (rows.length < RANGE_ROWS) return;
    }
  }

  /** Removes whole ranges that are too old, or too many. */
  async sweep(): Promise<void> {
    const { changes, store, clock, keptMs = KEPT_MS, keptBytes = KEPT_BYTES } = this.#deps;
    let bytes = await store.keptBytes();
    while (!this.#isStopped) {
      const oldest = await store.oldestKept();
      if (oldest === undefined) return;
      const isOld = clock.now() - oldest.last_at > keptMs;
      if (!isOld && bytes <= keptBytes) return;
      await changes.store(store.removeRange(oldest.id, clock.now()));
      bytes -= oldest.bytes;
    }
  }

  /** Reads every range again, and computes the chain. */
  async verify(): Promise<AuditVerification> {
    const { store } = this.#deps;
    const found = { ranges: 0, rows: 0, removed: 0 };
    let head = FIRST_HEAD;
    let fault: string | null = null;
    for (let after = 0; fault === null; ) {
      const seals = await store.seals(after, SEALS_AT_ONCE);
      for (const seal of seals) {
        fault = await this.#faultOf(seal, { before: head, number: after + 1 });
        if (fault !== null) break;
        head = seal.head;
        after = seal.id;
        found.ranges++;
        if (seal.removed_at === null) found.rows += seal.rows;
        else found.removed++;
      }
      if (seals.length < SEALS_AT_ONCE) break;
    }
    return {
      ok: fault === null,
      ...found,
      unsealed: await store.countUnsealed(),
      head: found.ranges === 0 ? null : { range: found.ranges, hash: head },
      fault,
    };
  }

  async #faultOf(
    seal: SealRow,
    { before, number }: { before: string; number: number },
  ): Promise<string | null> {
    if (seal.id !== number) return `range ${number} is missing`;
    if (headAfter(before, seal) !== seal.head) return `range ${number} does not follow the one before it`;
    if (seal.removed_at !== null) return null;
    const rows = await this.#deps.store.rowsOf(seal.id);
    if (rows.length !== seal.rows) return `range ${number} has ${rows.length} rows, and had ${seal.rows}`;
    return digestOf(rows).digest === seal.digest ? null : `a row of range ${number} was changed`;
  }
}
