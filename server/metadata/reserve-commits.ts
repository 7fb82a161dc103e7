/**
 * Commits that find the disk full get a second try on the reserved blocks: deletes and the ledger must
 * work at 0 free bytes. New bytes are refused long before, by DiskRoom.assertRoom.
 */
import { isAppError } from '../platform/errors.ts';
import type { Metadata, SqlValue, Statement, StatementResult } from './metadata.ts';

export class ReserveCommits implements Metadata {
  readonly #metadata: Metadata;
  readonly #releaseReserve: () => Promise<boolean>;

  constructor(metadata: Metadata, releaseReserve: () => Promise<boolean>) {
    this.#metadata = metadata;
    this.#releaseReserve = releaseReserve;
  }

  get<T>(sql: string, ...params: SqlValue[]) {
    return this.#metadata.get<T>(sql, ...params);
  }

  all<T>(sql: string, ...params: SqlValue[]) {
    return this.#metadata.all<T>(sql, ...params);
  }

  commit(statements: readonly Statement[]): Promise<StatementResult[]> {
    return this.#metadata.commit(statements).catch(async (error: unknown) => {
      if (isAppError(error, 'out_of_space') && (await this.#releaseReserve()))
        return this.#metadata.commit(statements);
      throw error;
    });
  }

  close(): Promise<void> {
    return this.#metadata.close();
  }
}
