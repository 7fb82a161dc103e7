/**
 * Row ids, reserved from the database's sequences in blocks, so that a commit knows its ids before
 * it is sent. Each node has blocks of its own, and lists are in the order of ids: a block is used for a
 * second only, and not at all where the order decides (see Statement).
 */
import type { Client } from 'pg';
import type { SqlValue, Statement } from '../../metadata/metadata.ts';
import type { Ready, ReadyStatement } from './batch-plan.ts';
import { insertedRow, withId } from './sql-texts.ts';

/** Increment of the sequences in the schema: each value stands for this many ids. */
const BLOCK = 64;
/** Later, the rest of a block stays unused. */
const KEPT_MS = 1000;

interface Text {
  readonly sql: string;
  /** The table whose next id is placed before the params; null: none. */
  readonly table: string | null;
  /** Index of the param for the row's id; −1: none. */
  readonly idParam: number;
}

/** Reserved ids of a table. */
interface Free {
  /** In order; each is greater than those of `kept`. */
  readonly latest: number[];
  readonly kept: number[];
  /** Monotonic time when the kept ones were reserved. */
  since: number;
}

export interface RowIdsDeps {
  /** Tables whose row ids come from a sequence. */
  readonly tables: ReadonlySet<string>;
  readonly clock: { monotonic(): number };
}

export class RowIds {
  readonly #deps: RowIdsDeps;
  readonly #texts = new Map<string, Text>();
  readonly #free = new Map<string, Free>();

  constructor(deps: RowIdsDeps) {
    this.#deps = deps;
  }

  /** Reserves the row ids that the commits need. At most one round trip. */
  async prepare(client: Client, commits: readonly (readonly Statement[])[]): Promise<void> {
    const needed = new Map<string, { latest: number; any: number }>();
    for (const { sql, isLatest } of commits.flat()) {
      const { table } = this.#text(sql);
      if (table === null) continue;
      const count = needed.get(table) ?? { latest: 0, any: 0 };
      count[isLatest === true ? 'latest' : 'any']++;
      needed.set(table, count);
    }
    await Promise.all([...needed].map(([table, count]) => this.#reserve(client, table, count)));
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
      const all = table === null ? params : [this.#next(table, statement.isLatest === true), ...params];
      ids.push(idParam < 0 ? undefined : Number(all[idParam]));
      return { ...statement, sql, params: all };
    });
  }

  #of(table: string): Free {
    const free = this.#free.get(table) ?? { latest: [], kept: [], since: 0 };
    this.#free.set(table, free);
    return free;
  }

  #next(table: string, isLatest: boolean): number {
    const { latest, kept } = this.#of(table);
    return ((isLatest ? undefined : kept.shift()) ?? latest.shift()) as number;
  }

  async #reserve(
    client: Client,
    table: string,
    { latest, any }: { readonly latest: number; readonly any: number },
  ): Promise<void> {
    const free = this.#of(table);
    const now = this.#deps.clock.monotonic();
    // Ids that an earlier batch left are no longer the latest.
    free.kept.push(...free.latest.splice(0));
    if (now - free.since >= KEPT_MS) free.kept.length = 0;
    const missing = latest + Math.max(0, any - free.kept.length);
    if (missing === 0) return;
    const { rows } = await client.query<{ first: number }>(
      `SELECT nextval('${table}_id_seq') AS first FROM generate_series(1, ${Math.ceil(missing / BLOCK)})`,
    );
    if (free.kept.length === 0) free.since = now;
    for (const { first } of rows) for (let i = 0; i < BLOCK; i++) free.latest.push(first + i);
  }

  #text(sql: string): Text {
    const known = this.#texts.get(sql);
    if (known !== undefined) return known;
    const row = insertedRow(sql);
    const isGiven = row === null || row.idParam >= 0 || !this.#deps.tables.has(row.table);
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
