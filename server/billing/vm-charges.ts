/** What machines cost: the statements that compute puts into its commits. */
import type { Statement } from '../metadata/metadata.ts';
import type { BillingAccountStore } from './accounts-store.ts';
import type { Holds } from './holds.ts';
import type { Prices } from './prices.ts';
import type { Quotas } from './quotas.ts';
import type { Usage, UsedVm } from './usage.ts';

export interface VmChargesDeps {
  readonly usage: Usage;
  readonly holds: Holds;
  readonly prices: Prices;
  readonly quotas: Quotas;
  readonly accounts: BillingAccountStore;
  readonly now: () => number;
  /** Throws `insufficient_credits`, telling of `neededMicro`, when the account may not begin anything new. */
  readonly assertCredit: (accountId: number, neededMicro?: bigint) => Promise<void>;
}

interface WantedVm {
  readonly account_id: number;
  readonly plan: string;
  readonly instance_type: string;
}

type CountedVm = UsedVm & { readonly vcpus: number };

const NANO = 1e9;

export class VmCharges {
  readonly #deps: VmChargesDeps;

  constructor(deps: VmChargesDeps) {
    this.#deps = deps;
  }

  /** A refusal says that an hour of the type is needed. */
  async assertCredit({ account_id, plan, instance_type }: WantedVm): Promise<void> {
    await this.#deps.assertCredit(account_id, this.#deps.holds.hourMicro(plan, instance_type) || undefined);
  }

  /** '' without such an account. */
  async planOf(accountId: number): Promise<string> {
    return (await this.#deps.accounts.find(accountId))?.plan ?? '';
  }

  /** Credits an hour that it runs, now. */
  pricePerHour(plan: string, instanceType: string): number {
    const { prices, now } = this.#deps;
    const question = { variant: instanceType, plan, at: now() };
    return Number(prices.priceNano({ ...question, meter: 'vm.time' })) / NANO;
  }

  async created(vm: CountedVm): Promise<readonly Statement[]> {
    const { usage, quotas } = this.#deps;
    return [...(await quotas.claimVm(vm)), ...usage.vmCreated(vm)];
  }

  reserved(vm: UsedVm): Promise<readonly Statement[]> {
    return this.#deps.holds.place(vm);
  }

  released(vm: UsedVm): Promise<readonly Statement[]> {
    return this.#deps.holds.release(vm);
  }

  started(vm: UsedVm, at: number): readonly Statement[] {
    return this.#deps.usage.vmStarted(vm, at);
  }

  stopped(vm: UsedVm, at: number): readonly Statement[] {
    return this.#deps.usage.vmStopped(vm, at);
  }

  deleted(vm: CountedVm): readonly Statement[] {
    return [...this.#deps.quotas.releaseVm(vm), ...this.#deps.usage.vmDeleted(vm)];
  }
}
