/**
 * Row ids, reserved from the database's sequences in blocks, so that a commit knows its ids before
 * it is sent.
 */
import type { Client } from 'pg';
import type { SqlValue, Statement } from '../../metadata/metadata.ts';
import type { Ready, ReadyStatement } from './batch-plan.ts';
import { insertedRow, withId } from './sql-texts.ts';

/** Increment of the sequences in the schema: each value stands for this many ids. */
const BLOCK = 64;

interface Text {
  readonly sql: string;
  /** The table whose next id is placed before the params; null: none. */
  readonly table: string | null;
  /** Index of the param for the row's id; −1: none. */
  readonly idParam: number;
}

export class RowIds {
  readonly #tables: ReadonlySet<string>;
  readonly #texts = new Map<string, Text>();
  readonly #free = new Map<string, number[]>();

  /** `tables`: those whose row ids come from a sequence. */
  constructor(tables: ReadonlySet<string>) {
    this.#tables = tables;
  }

  /** Reserves the row ids that the commits need. At most one round trip. */
  async prepare(client: Client, commits: readonly (readonly Statement[])[]): Promise<void> {
    const missing = new Map<string, number>();
    for (const { sql } of commits.flat()) {
      const { table } = this.#text(sql);
      if (table !== null) missing.set(table, (missing.get(table) ?? -this.#of(table).length) + 1);
    }
    await Promise.all([...missing].map(([table, count]) => this.#fetch(client, table, count)));
  }

  /** The commit with its row ids, after prepare(). */
  assign(statements: readonly Statement[]): Ready {
    const ids: (number | undefined)[] = [];
    return statements.map((statement): ReadyStatement => {
      const { sql, table, idParam } = this.#text(statement.sql);
      const params = statement.params.map((param): SqlValue => {
        if (param === null || typeof param !== 'object' || !('rowIdOf' in param)) return param;
        const id = ids[param.rowIdOf];
        if (id === undefined) throw new RangeError(`rowIdOf ${param.rowIdOf} names no INSERT before it`);
        return id;
      });
      const all = table === null ? params : [this.#of(table).shift() as number, ...params];
      ids.push(idParam < 0 ? undefined : Number(all[idParam]));
      return { ...statement, sql, params: all };
    });
  }

  #of(table: string): number[] {
    const free = this.#free.get(table) ?? [];
    this.#free.set(table, free);
    return free;
  }

  async #fetch(client: Client, table: string, count: number): Promise<void> {
    if (count <= 0) return;
    const { rows } = await client.query<{ first: number }>(
      `SELECT nextval('${table}_id_seq') AS first FROM generate_series(1, ${Math.ceil(count / BLOCK)})`,
    );
    for (const { first } of rows) for (let i = 0; i < BLOCK; i++) this.#of(table).push(first + i);
  }

  #text(sql: string): Text {
    const known = this.#texts.get(sql);
    if (known !== undefined) return known;
    const row = insertedRow(sql);
    const isGiven = row === null || row.idParam >= 0 || !this.#tables.has(row.table);
    const made = isGiven
      ? { sql, table: null, idParam: row?.idParam ?? -1 }
      : { sql: withId(sql), table: row.table, idParam: 0 };
    this.#texts.set(sql, made);
    return made;
  }
}

/** Tables whose row ids come from a sequence. */
export async function numberedTables(client: Client): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ table: string }>(
    `SELECT regexp_replace(sequencename, '_id_seq$', '') AS table FROM pg_sequences
     WHERE schemaname = current_schema() AND sequencename LIKE '%_id_seq'`,
  );
  return new Set(rows.map(({ table }) => table));
}
