/** What databases cost: the statements that the domain puts into its commits. */
import type { Statement } from '../metadata/metadata.ts';
import type { Prices } from './prices.ts';
import type { Quotas } from './quotas.ts';
import { burnNanoOf } from './standing-burn.ts';
import type { Usage, UsedDatabase } from './usage.ts';

export interface DatabaseChargesDeps {
  readonly usage: Usage;
  readonly quotas: Quotas;
  readonly prices: Prices;
  readonly now: () => number;
  /** Throws `insufficient_credits` when the account may not begin anything new. */
  readonly assertCredit: (accountId: number) => Promise<void>;
}

interface PricedDatabase {
  readonly engine: string;
  readonly size_bytes: number;
}

const NANO = 1e9;

export class DatabaseCharges {
  readonly #deps: DatabaseChargesDeps;

  constructor(deps: DatabaseChargesDeps) {
    this.#deps = deps;
  }

  assertCredit(accountId: number): Promise<void> {
    return this.#deps.assertCredit(accountId);
  }

  created({ account_id }: UsedDatabase): Promise<readonly Statement[]> {
    return this.#deps.quotas.claimDatabase(account_id);
  }

  opened(database: UsedDatabase, sizeBytes: number): readonly Statement[] {
    return [this.#deps.usage.databaseOpened(database, sizeBytes)];
  }

  resized({ database_id }: UsedDatabase, sizeBytes: number): readonly Statement[] {
    return [this.#deps.usage.databaseResized(database_id, sizeBytes)];
  }

  renamed({ database_id, name }: UsedDatabase): readonly Statement[] {
    return [this.#deps.usage.databaseRenamed(database_id, name)];
  }

  abandoned({ account_id }: UsedDatabase): readonly Statement[] {
    return this.#deps.quotas.releaseDatabase(account_id);
  }

  deleted({ account_id, database_id }: UsedDatabase): readonly Statement[] {
    const { quotas, usage } = this.#deps;
    return [...quotas.releaseDatabase(account_id), usage.databaseDeleted(database_id)];
  }

  pricePerHour(plan: string, { engine, size_bytes: level }: PricedDatabase): number {
    const { prices, now } = this.#deps;
    const meter = 'database.storage';
    const priceNano = prices.priceNano({ meter, variant: engine, plan, at: now() });
    return Number(burnNanoOf({ meter, level }, priceNano)) / NANO;
  }
}
