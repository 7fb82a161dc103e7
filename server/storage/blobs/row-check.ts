/** Part of the scrub: verifies the rows of all objects and buckets against their checksums. */
import type { Changes } from '../../metadata/change.ts';
import type { Awaitable, Statement } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { isSoundBucket } from '../buckets/bucket-sql.ts';
import { isSound } from '../objects/version-row-sql.ts';
import type { CheckedBucketRow, DamagedBucketRow, RowCheckSql, ScrubbedRow } from './row-check-sql.ts';

const PAGE = 500;

export interface RowCheckDeps {
  readonly changes: Changes;
  readonly rows: RowCheckSql;
  readonly clock: Clock;
}

/** A kind of row, such as buckets. */
interface Kind<R extends { readonly id: number }> {
  page(after: number, limit: number): Awaitable<R[]>;
  /** Statements about a row that was read. */
  after(row: R): Statement[];
}

export class RowCheck {
  readonly #deps: RowCheckDeps;

  constructor(deps: RowCheckDeps) {
    this.#deps = deps;
  }

  /** Verifies all rows and marks damaged ones. Resolves with their numbers. Throws the reason of `signal`. */
  async run(signal: AbortSignal): Promise<{ versions: number; buckets: number }> {
    const { rows } = this.#deps;
    const buckets = await this.#walk<CheckedBucketRow>(signal, {
      page: (after, limit) => rows.buckets(after, limit),
      after: (row) => this.#afterBucket(row),
    });
    const versions = await this.#walk<ScrubbedRow>(signal, {
      page: (after, limit) => rows.page(after, limit),
      after: (row) => this.#after(row),
    });
    return { versions, buckets };
  }

  async #walk<R extends { readonly id: number }>(signal: AbortSignal, kind: Kind<R>): Promise<number> {
    let [checked, after] = [0, 0];
    for (;;) {
      const page = await kind.page(after, PAGE);
      const statements: Statement[] = [];
      for (const row of page) statements.push(...kind.after(row));
      await this.#store(statements);
      checked += page.length;
      after = page.at(-1)?.id ?? after;
      if (page.length === 0) return checked;
      await new Promise(setImmediate);
      signal.throwIfAborted();
    }
  }

  /** Verifies again the row of a version, by its id, that a reader found damaged. */
  async look(id: number): Promise<void> {
    const row = await this.#deps.rows.row(id);
    if (row !== undefined) await this.#store(this.#after(row));
  }

  /** Like the method above, for the row of a bucket. */
  async lookAtBucket(id: number): Promise<void> {
    const row = await this.#deps.rows.bucket(id);
    if (row !== undefined) await this.#store(this.#afterBucket(row));
  }

  countDamaged(): Promise<number> {
    return this.#deps.rows.countDamaged();
  }

  countDamagedBuckets(): Promise<number> {
    return this.#deps.rows.countDamagedBuckets();
  }

  async damagedBuckets(limit: number): Promise<DamagedBucketRow[]> {
    return this.#deps.rows.damagedBuckets(limit);
  }

  async #store(statements: Statement[]): Promise<void> {
    if (statements.length > 0) await this.#deps.changes.store(statements);
  }

  #after(row: ScrubbedRow): Statement[] {
    const { rows, clock } = this.#deps;
    const sound = isSound(row);
    const isMarked = row.damaged_at !== null;
    const mark = sound === isMarked ? [rows.setDamaged(row.id, sound ? null : clock.now())] : [];
    return sound ? [...mark, ...rows.fillIn(row)] : mark;
  }

  #afterBucket(row: CheckedBucketRow): Statement[] {
    const { rows, clock } = this.#deps;
    const sound = isSoundBucket(row);
    const isMarked = row.damaged_at !== null;
    const mark = sound === isMarked ? [rows.setBucketDamaged(row.id, sound ? null : clock.now())] : [];
    return sound ? [...mark, ...rows.fillInBucket(row)] : mark;
  }
}
