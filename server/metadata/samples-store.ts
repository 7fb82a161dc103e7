/** SQL of readings that are taken every few seconds: fine ones for an hour, coarse ones for a month. */
import type { Awaitable, Reads, Statement } from './metadata.ts';

/** Steps that are kept, s. */
export const FINE_STEP = 5;
export const COARSE_STEP = 300;

/** A table of readings: (owner, step_seconds, at) and figures, null where nothing is known. */
export interface SampleTable<Figure extends string> {
  readonly name: string;
  /** Column of the row id of what was read. */
  readonly owner: string;
  /** Where that row is. */
  readonly owners: string;
  /** Each with what a coarse row has of the fine ones: their mean, as it is or whole, or the newest. */
  readonly figures: Readonly<Record<Figure, 'mean' | 'whole mean' | 'newest'>>;
}

export type Figures<Figure extends string> = Readonly<Record<Figure, number | null>>;

export type Sample<Figure extends string> = Figures<Figure> & {
  /** ms since 1970; of a coarse row, the beginning of what it stands for. */
  readonly at: number;
};

interface Span {
  readonly from: number;
  /** Not included. */
  readonly to: number;
}

export class SamplesStore<Figure extends string> {
  readonly #reads: Reads;
  readonly table: SampleTable<Figure>;
  readonly #columns: readonly Figure[];

  constructor(reads: Reads, table: SampleTable<Figure>) {
    this.#reads = reads;
    this.table = table;
    this.#columns = Object.keys(table.figures) as Figure[];
  }

  /** Oldest first. */
  range(owner: number, stepSeconds: number, span: Span): Awaitable<Sample<Figure>[]> {
    const { table } = this;
    return this.#reads.all(
      `SELECT at, ${this.#columns} FROM ${table.name}
       WHERE ${table.owner} = ? AND step_seconds = ? AND at >= ? AND at < ? ORDER BY at`,
      owner,
      stepSeconds,
      span.from,
      span.to,
    );
  }

  /** The newest fine reading at or after `since`. */
  newest(owner: number, since: number): Awaitable<Sample<Figure> | undefined> {
    const { table } = this;
    return this.#reads.get(
      `SELECT at, ${this.#columns} FROM ${table.name}
       WHERE ${table.owner} = ? AND step_seconds = ? AND at >= ? ORDER BY at DESC LIMIT 1`,
      owner,
      FINE_STEP,
      since,
    );
  }

  /** Does nothing for an owner that was deleted meanwhile: the readings of others share the commit. */
  insert(owner: number, sample: Sample<Figure>): Statement {
    const { table } = this;
    return {
      sql: `INSERT OR REPLACE INTO ${table.name} (${table.owner}, step_seconds, at, ${this.#columns})
            SELECT id, ${FINE_STEP}, ?, ${this.#columns.map(() => '?')} FROM ${table.owners} WHERE id = ?`,
      params: [sample.at, ...this.#columns.map((column) => sample[column]), owner],
    };
  }

  /**
   * Makes one coarse row of each owner's fine ones for each coarse step that begins in the span. SQLite takes
   * the columns outside of aggregates from the row that has the `max`: that is how the newest is found.
   */
  aggregate(span: Span): Statement {
    const { table } = this;
    const ms = COARSE_STEP * 1000;
    const summed = {
      mean: (column: string) => `avg(${column})`,
      'whole mean': (column: string) => `CAST(round(avg(${column})) AS INTEGER)`,
      newest: (column: string) => column,
    };
    const columns = this.#columns.map((column) => `${summed[table.figures[column]](column)} AS f_${column}`);
    return {
      sql: `INSERT OR REPLACE INTO ${table.name} (${table.owner}, step_seconds, at, ${this.#columns})
            SELECT ${table.owner}, ${COARSE_STEP}, bucket, ${this.#columns.map((column) => `f_${column}`)}
            FROM (SELECT ${table.owner}, at - at % ${ms} AS bucket, max(at) AS newest, ${columns}
                  FROM ${table.name} WHERE step_seconds = ${FINE_STEP} AND at >= ? AND at < ?
                  GROUP BY ${table.owner}, bucket)`,
      params: [span.from, span.to],
    };
  }

  prune(stepSeconds: number, before: number): Statement {
    const sql = `DELETE FROM ${this.table.name} WHERE step_seconds = ? AND at < ?`;
    return { sql, params: [stepSeconds, before] };
  }
}
