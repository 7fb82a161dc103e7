/** Tells who watches what every commit changed, once it is stored. */
import type { Metadata, SqlValue, Statement, StatementResult, Told } from './metadata.ts';

export class ToldCommits implements Metadata {
  readonly #metadata: Metadata;
  readonly #tell: (told: Told) => void;

  /** `tell` must not throw. */
  constructor(metadata: Metadata, tell: (told: Told) => void) {
    this.#metadata = metadata;
    this.#tell = tell;
  }

  get<T>(sql: string, ...params: SqlValue[]) {
    return this.#metadata.get<T>(sql, ...params);
  }

  all<T>(sql: string, ...params: SqlValue[]) {
    return this.#metadata.all<T>(sql, ...params);
  }

  async commit(statements: readonly Statement[]): Promise<StatementResult[]> {
    const results = await this.#metadata.commit(statements);
    for (const { tells } of statements) if (tells !== undefined) this.#tell(tells);
    return results;
  }

  close(): Promise<void> {
    return this.#metadata.close();
  }
}
