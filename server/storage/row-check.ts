/** Verifies the rows of all objects against their checksums, as a part of the scrub. */
import type { Changes } from '../metadata/change.ts';
import type { Statement } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import type { RowCheckSql } from './row-check-sql.ts';
import { type CheckedRow, isSound } from './row-checksums.ts';

const PAGE = 500;

export interface RowCheckDeps {
  readonly changes: Changes;
  readonly rows: RowCheckSql;
  readonly clock: Clock;
}

export class RowCheck {
  readonly #deps: RowCheckDeps;

  constructor(deps: RowCheckDeps) {
    this.#deps = deps;
  }

  /** Verifies all rows, and marks those that are damaged. Their number. Throws the reason of `signal`. */
  async run(signal: AbortSignal): Promise<number> {
    const { rows, changes } = this.#deps;
    let [checked, after] = [0, 0];
    for (;;) {
      const page = await rows.page(after, PAGE);
      const statements: Statement[] = [];
      for (const row of page) statements.push(...this.#after(row));
      if (statements.length > 0) await changes.store(statements);
      checked += page.length;
      after = page.at(-1)?.id ?? after;
      if (page.length === 0) return checked;
      await new Promise(setImmediate);
      signal.throwIfAborted();
    }
  }

  /** Looks again at a row, by its id, that a reader found damaged. */
  async look(id: number): Promise<void> {
    const row = await this.#deps.rows.row(id);
    const statements = row === undefined ? [] : this.#after(row);
    if (statements.length > 0) await this.#deps.changes.store(statements);
  }

  countDamaged(): Promise<number> {
    return this.#deps.rows.countDamaged();
  }

  #after(row: CheckedRow): Statement[] {
    const { rows, clock } = this.#deps;
    const sound = isSound(row);
    const isMarked = row.damaged_at !== null;
    const mark = sound === isMarked ? [rows.setDamaged(row.id, sound ? null : clock.now())] : [];
    return sound ? [...mark, ...rows.fillIn(row)] : mark;
  }
}
