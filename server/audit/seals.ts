/**
 * Ranges of rows are sealed, each with the hash of the previous one, so that a row changed or
 * removed later is detected. A row belongs to the first range sealed after it was stored, whatever
 * its id, since late commits may have lower ids than earlier ones.
 */
import type { Changes } from '../metadata/change.ts';
import type { Clock } from '../platform/clock.ts';
import { digestOf, FIRST_HEAD, headAfter } from './chain.ts';
import type { AuditStore, SealRow } from './store.ts';

export interface SealsDeps {
  readonly changes: Changes;
  readonly store: AuditStore;
  readonly clock: Clock;
  /** Default: 365 days. */
  readonly keptMs?: number;
  /** Default: 4 GiB. */
  readonly keptBytes?: number;
}

/** Maximum rows of a range, and maximum age of an unsealed row. */
const RANGE_ROWS = 2000;
const RANGE_MS = 10 * 60_000;
const KEPT_MS = 365 * 24 * 3_600_000;
const KEPT_BYTES = 4 * 2 ** 30;
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

  /** Seals new entries. If two processes of a cluster try at once, only one succeeds. */
  async seal({ all = false } = {}): Promise<void> {
    const { changes, store, clock } = this.#deps;
    while (!this.#isStopped) {
      // Read before the rows: a range that another process seals in between then has the same number, and
      // the later one is refused. Read after them, the number would be free, and late rows sealed unread.
      const before = await store.lastSeal();
      const rows = await store.unsealed(RANGE_ROWS);
      const [first] = rows;
      const last = rows.at(-1);
      if (first === undefined || last === undefined) return;
      const isDue = rows.length === RANGE_ROWS || rows.some(({ at }) => clock.now() - at >= RANGE_MS);
      if (!isDue && !all) return;
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
      // Skipped if a row was added meanwhile: the next seal includes it.
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
}
