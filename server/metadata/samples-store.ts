/** SQL of readings taken every few seconds: fine ones kept for an hour, coarse ones for a month. */
import type { Awaitable, Reads, Statement } from './metadata.ts';

/** Stored steps, s. */
export const FINE_STEP = 5;
export const COARSE_STEP = 300;

/** A table of readings: (owner, step_seconds, at) and figures, null if unknown. */
export interface SampleTable<Figure extends string> {
  readonly name: string;
  /** The column with the row id of the owner. */
  readonly owner: string;
  /** The table of the owners. */
  readonly owners: string;
  /** Each figure with its aggregation in coarse rows: mean, rounded mean, or newest value. */
  readonly figures: Readonly<Record<Figure, 'mean' | 'whole mean' | 'newest'>>;
}

export type Figures<Figure extends string> = Readonly<Record<Figure, number | null>>;

export type Sample<Figure extends string> = Figures<Figure> & {
  /** ms since 1970; of a coarse row, the start of its step. */
  readonly at: number;
};

interface Span {
  readonly from: number;
  /** Exclusive. */
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

  /** Does nothing if the owner was deleted: other readings share the commit. */
  insert(owner: number, sample: Sample<Figure>): Statement {
    const { table } = this;
    return {
      sql: `INSERT INTO ${table.name} (${table.owner}, step_seconds, at, ${this.#columns})
            SELECT id, ${FINE_STEP}, ?, ${this.#columns.map(() => '?')} FROM ${table.owners} WHERE id = ?
            ${this.#replace}`,
      params: [sample.at, ...this.#columns.map((column) => sample[column]), owner],
    };
  }

  /** Aggregates each owner's fine rows into one coarse row per coarse step in the span. */
  aggregate(span: Span): Statement {
    const { table } = this;
    const ms = COARSE_STEP * 1000;
    const means: string[] = [];
    const figures = this.#columns.map((column) => {
      const how = table.figures[column];
      if (how === 'newest') return `newest.${column}`;
      const mean = how === 'mean' ? `avg(${column})` : `CAST(round(avg(${column})) AS BIGINT)`;
      means.push(`, ${mean} AS ${column}`);
      return `step.${column}`;
    });
    return {
      sql: `INSERT INTO ${table.name} (${table.owner}, step_seconds, at, ${this.#columns})
            SELECT step.${table.owner}, ${COARSE_STEP}, step.begins, ${figures}
            FROM (SELECT ${table.owner}, at - at % ${ms} AS begins, max(at) AS newest_at${means.join('')}
                  FROM ${table.name} WHERE step_seconds = ${FINE_STEP} AND at >= ? AND at < ?
                  GROUP BY ${table.owner}, at - at % ${ms}) AS step
            JOIN ${table.name} AS newest ON newest.${table.owner} = step.${table.owner}
              AND newest.step_seconds = ${FINE_STEP} AND newest.at = step.newest_at
            WHERE true ${this.#replace}`,
      params: [span.from, span.to],
    };
  }

  get #replace(): string {
    const sets = this.#columns.map((column) => `${column} = excluded.${column}`);
    return `ON CONFLICT (${this.table.owner}, step_seconds, at) DO UPDATE SET ${sets.join(', ')}`;
  }

  prune(stepSeconds: number, before: number): Statement {
    const sql = `DELETE FROM ${this.table.name} WHERE step_seconds = ? AND at < ?`;
    return { sql, params: [stepSeconds, before] };
  }
}
