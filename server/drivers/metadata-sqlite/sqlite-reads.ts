/** Queries on one connection, prepared once each. */
import type Database from 'better-sqlite3';
import type { Reads, SqlValue } from '../../metadata/metadata.ts';
import { type ExactQuery, readExactly, readFirstExactly } from './integers.ts';
import { stablePlan } from './stable-plan.ts';

const MAX_PREPARED = 500;

/** SQLite's errors are passed on. */
export class SqliteReads implements Reads {
  readonly #database: Database.Database;
  readonly #queries = new Map<string, ExactQuery>();

  constructor(database: Database.Database) {
    this.#database = database;
  }

  get<T>(sql: string, ...params: SqlValue[]): T | undefined {
    return readFirstExactly(this.#query(sql), params) as T | undefined;
  }

  all<T>(sql: string, ...params: SqlValue[]): T[] {
    return readExactly(this.#query(sql), params) as T[];
  }

  #query(sql: string): ExactQuery {
    const known = this.#queries.get(sql);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(stablePlan(sql));
    const query = { statement, columns: statement.columns().map((column) => column.name) };
    if (this.#queries.size >= MAX_PREPARED) {
      for (const oldest of this.#queries.keys()) {
        this.#queries.delete(oldest);
        break;
      }
    }
    this.#queries.set(sql, query);
    return query;
  }
}
