/** What databases cost: the statements that the domain puts into its commits. */
import type { Statement } from '../metadata/metadata.ts';
import type { Quotas } from './quotas.ts';

export interface DatabaseChargesDeps {
  readonly quotas: Quotas;
  /** Throws `insufficient_credits` when the account may not begin anything new. */
  readonly require: (accountId: number) => Promise<void>;
}

interface CountedDatabase {
  readonly account_id: number;
}

export class DatabaseCharges {
  readonly #deps: DatabaseChargesDeps;

  constructor(deps: DatabaseChargesDeps) {
    this.#deps = deps;
  }

  require(accountId: number): Promise<void> {
    return this.#deps.require(accountId);
  }

  created({ account_id }: CountedDatabase): Promise<readonly Statement[]> {
    return this.#deps.quotas.claimDatabase(account_id);
  }

  opened(): readonly Statement[] {
    return [];
  }

  resized(): readonly Statement[] {
    return [];
  }

  abandoned({ account_id }: CountedDatabase): readonly Statement[] {
    return this.#deps.quotas.releaseDatabase(account_id);
  }

  deleted({ account_id }: CountedDatabase): readonly Statement[] {
    return this.#deps.quotas.releaseDatabase(account_id);
  }

  pricePerHour(): number {
    return 0;
  }
}
