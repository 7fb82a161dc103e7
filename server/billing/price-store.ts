/** SQL of prices and plans. */
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';
import type { MeterName } from './meters.ts';

export interface PriceRow {
  readonly meter: MeterName;
  readonly variant: string;
  /** '' for all. */
  readonly plan: string;
  /** ms since 1970, a whole hour. */
  readonly effective_from: number;
  readonly price_nano: number | bigint;
}

export class PriceStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** All that were ever set. */
  list(): Awaitable<PriceRow[]> {
    return this.#reads.all('SELECT meter, variant, plan, effective_from, price_nano FROM prices');
  }

  /** In place of one for the same hour. */
  set({ meter, variant, plan, effective_from, price_nano }: PriceRow): Statement {
    return {
      sql: `INSERT OR REPLACE INTO prices (meter, variant, plan, effective_from, price_nano)
            VALUES (?, ?, ?, ?, ?)`,
      params: [meter, variant, plan, effective_from, price_nano],
    };
  }

  async planOf(accountId: number): Promise<string | undefined> {
    const sql = 'SELECT plan FROM accounts WHERE id = ?';
    return (await this.#reads.get<{ plan: string }>(sql, accountId))?.plan;
  }
}
