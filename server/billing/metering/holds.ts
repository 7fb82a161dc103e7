/**
 * Credits on hold for running machines: one hour of the price, from start to stop, so that machines
 * started at the same time cannot spend the same credits. When the account has no other credits
 * left, holds pay for the remaining usage.
 */
import type { Statement } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Prices } from '../catalog/prices.ts';
import type { BillingAccountStore } from '../credit/billing-account-store.ts';
import type { Spendable } from '../credit/credit.ts';
import { moreCredits } from '../credit/credit.ts';
import { transferStatements } from '../ledger/ledger.ts';
import type { UsedVm } from './resource-charges.ts';
import { deleteHold, insertHold, raiseHold, type UsageStore } from './usage-store.ts';

export interface HoldsDeps {
  readonly store: UsageStore;
  readonly accounts: BillingAccountStore;
  readonly spendable: Pick<Spendable, 'of'>;
  readonly prices: Prices;
  readonly clock: Clock;
}

const NANO_PER_MICRO = 1000n;

export class Holds {
  readonly #deps: HoldsDeps;

  constructor(deps: HoldsDeps) {
    this.#deps = deps;
  }

  /**
   * The statements that hold an hour of the machine's price; none if it is held already, or is
   * free. Throws `insufficient_credits` with the amount needed; the commit is refused if the
   * credits were spent in the meantime.
   */
  async place(vm: UsedVm): Promise<Statement[]> {
    const { store, accounts, clock } = this.#deps;
    if ((await store.findHold(vm.vm_id)) !== undefined) return [];
    await this.#deps.prices.load();
    const account = await accounts.find(vm.account_id);
    const at = clock.now();
    const amountMicro = this.hourMicro(account?.plan ?? '', vm.instance_type);
    if (amountMicro === 0n) return [];
    const spendable = await this.#deps.spendable.of(vm.account_id);
    const stored = BigInt(account?.credits_micro ?? 0);
    // May exceed the stored amount: refunds of a stop that became known late come with the next charge.
    const free = spendable.free < stored ? spendable.free : stored;
    if (free < amountMicro) throw insufficient(vm, amountMicro, free);
    const sides = { debit: `account:${vm.account_id}`, credit: `held:${vm.account_id}` };
    return [
      ...transferStatements({
        ...sides,
        id: `hold-${newId('op', clock)}`,
        amountMicro,
        code: 'hold',
        reference: vm.vm_id,
        at,
      }),
      insertHold({ resource_id: vm.vm_id, account_id: vm.account_id, amount_micro: amountMicro }, at),
    ];
  }

  /**
   * The statements that refill the holds used up in a grace period, as far as the account's credits
   * allow. They are refused if these credits were spent in the meantime.
   */
  async refill(accountId: number): Promise<Statement[]> {
    const { store, accounts, clock } = this.#deps;
    await this.#deps.prices.load();
    const account = await accounts.find(accountId);
    let free = BigInt(account?.credits_micro ?? 0);
    const statements: Statement[] = [];
    for (const hold of await store.typedHoldsOf(accountId)) {
      const missing = this.hourMicro(account?.plan ?? '', hold.instance_type) - BigInt(hold.amount_micro);
      const amountMicro = missing < free ? missing : free;
      if (amountMicro <= 0n) continue;
      free -= amountMicro;
      const sides = { debit: `account:${accountId}`, credit: `held:${accountId}` };
      const id = `hold-${newId('op', clock)}`;
      const transfer = { ...sides, id, amountMicro, code: 'hold', reference: hold.resource_id };
      statements.push(...transferStatements({ ...transfer, at: clock.now() }), raiseHold(hold, amountMicro));
    }
    return statements;
  }

  /** The current hold for a machine of that type, micro-credits. */
  hourMicro(plan: string, instanceType: string): bigint {
    const { prices, clock } = this.#deps;
    const priceNano = prices.priceNano({ meter: 'vm.time', variant: instanceType, plan, at: clock.now() });
    // Rounded up, because less would not cover an hour.
    return (priceNano + NANO_PER_MICRO - 1n) / NANO_PER_MICRO;
  }

  /** The statements that release the rest of the hold; none if there is no hold. */
  async release({ vm_id, account_id }: Pick<UsedVm, 'vm_id' | 'account_id'>): Promise<Statement[]> {
    const { store, clock } = this.#deps;
    const hold = await store.findHold(vm_id);
    if (hold === undefined) return [];
    const amountMicro = BigInt(hold.amount_micro);
    const sides = { debit: `held:${account_id}`, credit: `account:${account_id}` };
    const id = `release-${newId('op', clock)}`;
    const transfer = { ...sides, id, amountMicro, code: 'release', reference: vm_id, at: clock.now() };
    return [...(amountMicro === 0n ? [] : transferStatements(transfer)), deleteHold(hold)];
  }
}

/** `needed` and `free` in micro-credits. */
function insufficient({ account_id, instance_type }: UsedVm, needed: bigint, free: bigint): AppError {
  const shown = (micro: bigint) => Number(micro) / 1e6;
  return new AppError(
    'insufficient_credits',
    `an hour of ${instance_type} costs ${shown(needed)} credits; ${shown(free)} are available`,
    {
      hint: `Stop another machine, use a smaller instance type, or ${moreCredits(account_id)}`,
      extra: { needed: shown(needed), available: shown(free) },
    },
  );
}
