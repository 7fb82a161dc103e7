/** SQL of saved queries. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';

export interface SavedRow {
  readonly id: number;
  readonly saved_query_id: string;
  /** Row id of the database. */
  readonly database_id: number;
  readonly name: string;
  readonly text: string;
  readonly updated_at: number;
}

const SELECT = 'SELECT id, saved_query_id, database_id, name, text, updated_at FROM saved_queries';

export class SavedSql {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** By name. */
  list(databaseId: number): Awaitable<SavedRow[]> {
    return this.#reads.all(`${SELECT} WHERE database_id = ? ORDER BY name`, databaseId);
  }

  find(savedQueryId: string): Awaitable<SavedRow | undefined> {
    return this.#reads.get(`${SELECT} WHERE saved_query_id = ?`, savedQueryId);
  }

  named(databaseId: number, name: string): Awaitable<SavedRow | undefined> {
    return this.#reads.get(`${SELECT} WHERE database_id = ? AND name = ?`, databaseId, name);
  }

  /** `bytes`: the growth. Refuses if all saved queries of the account would exceed `most` bytes. */
  expectRoom(accountId: number, bytes: number, most: number): Statement {
    return {
      sql: `UPDATE accounts SET id = id WHERE id = ? AND ? >= ? +
            (SELECT coalesce(sum(octet_length(q.text)), 0) FROM saved_queries q
             JOIN databases d ON d.id = q.database_id WHERE d.account_id = ?)`,
      params: [accountId, most, bytes, accountId],
      expectChanges: 1,
    };
  }

  /** Refuses when the database has `most` already. */
  insert(
    { saved_query_id, database_id, name, text, updated_at }: Omit<SavedRow, 'id'>,
    most: number,
  ): Statement {
    return {
      sql: `INSERT INTO saved_queries (saved_query_id, database_id, name, text, updated_at)
            SELECT ?, ?, ?, ?, ? WHERE (SELECT count(*) FROM saved_queries WHERE database_id = ?) < ?`,
      params: [saved_query_id, database_id, name, text, updated_at, database_id, most],
      expectChanges: 1,
    };
  }

  /** Refuses when it is gone. */
  replace({ id, text, updated_at }: Pick<SavedRow, 'id' | 'text' | 'updated_at'>): Statement {
    return {
      sql: 'UPDATE saved_queries SET text = ?, updated_at = ? WHERE id = ?',
      params: [text, updated_at, id],
      expectChanges: 1,
    };
  }

  /** Refuses when it is gone. */
  delete(id: number): Statement {
    return { sql: 'DELETE FROM saved_queries WHERE id = ?', params: [id], expectChanges: 1 };
  }
}
