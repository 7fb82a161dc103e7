/** SQL of the cached balance. */
import type { Reads } from '../metadata/metadata.ts';

export class CreditStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Micro-credits, or undefined without such an account. */
  async balanceMicro(accountId: number): Promise<number | bigint | undefined> {
    const sql = 'SELECT credits_micro AS micro FROM accounts WHERE id = ?';
    return (await this.#reads.get<{ micro: number | bigint }>(sql, accountId))?.micro;
  }
}
