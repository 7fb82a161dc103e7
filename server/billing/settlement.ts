/**
 * Turns use into charges: what was used since the last settlement becomes windows, one an hour, and
 * transfers of the ledger, in one commit. Settling twice charges once, and settling more often charges the
 * same. Between settlements nothing is owed that is not in the lines.
 */
import type { Clock } from '../clock.ts';
import { KeyLocks } from '../key-locks.ts';
import { CommitRejected, type Metadata, type Statement } from '../metadata/metadata.ts';
import type { BillingAccountStore, BillingRow } from './accounts-store.ts';
import { charge, spreadOverHours } from './charge.ts';
import type { HoldStore } from './hold-store.ts';
import { METERS, type Service, ticksOf } from './meters.ts';
import { payments } from './payments.ts';
import type { Prices } from './prices.ts';
import type { SteadyClock } from './steady-clock.ts';
import type { LineRow, UsageStore } from './usage-store.ts';

export interface SettlementDeps {
  readonly metadata: Metadata;
  readonly clock: Clock;
  readonly steady: SteadyClock;
  readonly prices: Prices;
  readonly usage: UsageStore;
  readonly accounts: BillingAccountStore;
  readonly holds: HoldStore;
}

/** One moment on both clocks, the same for all lines of a settlement. */
interface Moment {
  readonly wallMs: number;
  readonly steadyMs: number;
}

const MAX_TRIES = 20;
const PAGE_ACCOUNTS = 200;

export class Settlement {
  readonly #deps: SettlementDeps;
  readonly #locks = new KeyLocks();

  constructor(deps: SettlementDeps) {
    this.#deps = deps;
  }

  /**
   * Charges an account all it used up to now. `notSince`: not at all when that was done after this moment
   * (ms since 1970). Does nothing for an account that does not exist.
   */
  settle(accountId: number, notSince = Number.POSITIVE_INFINITY): Promise<void> {
    return this.#locks.run(String(accountId), async () => {
      for (let tries = 1; ; tries++) {
        try {
          return await this.#settleOnce(accountId, notSince);
        } catch (error) {
          // Somebody spent, or a resource was removed, between the look and the commit.
          if (!(error instanceof CommitRejected) || tries === MAX_TRIES) throw error;
        }
      }
    });
  }

  /** Every account that uses something. Returns how many. */
  async settleAll(): Promise<number> {
    let count = 0;
    for (let after = 0; ; ) {
      const ids = await this.#deps.usage.accountsInUse(after, PAGE_ACCOUNTS);
      // Together, so that they share commits.
      await Promise.all(ids.map((id) => this.settle(id)));
      count += ids.length;
      after = ids.at(-1) ?? after;
      if (ids.length < PAGE_ACCOUNTS) return count;
    }
  }

  async #settleOnce(accountId: number, notSince: number): Promise<void> {
    const { accounts, usage, holds, clock, steady, metadata } = this.#deps;
    const moment = { wallMs: clock.now(), steadyMs: steady.now() };
    const account = await accounts.find(accountId);
    if (account === undefined) return;
    // Nothing was settled at a time to come: then the wall clock was set back.
    if (account.settled_at > notSince && account.settled_at <= moment.wallMs) return;
    const lines = await usage.linesOf(accountId);
    const statements: Statement[] = [];
    const owed = new Map<Service, bigint>();
    for (const line of lines) {
      const { service } = METERS[line.meter];
      const cost = this.#settleLine(account, line, { moment, statements });
      owed.set(service, (owed.get(service) ?? 0n) + cost);
    }
    if (lines.some((line) => line.is_closed === 1)) statements.push(usage.forgetClosed(accountId));
    if (statements.length === 0) return;
    await metadata.commit([
      accounts.countSettlement(accountId, account.settlement, moment.wallMs),
      ...statements,
      ...payments(account, { owed, holds: await holds.listOf(accountId), at: moment.wallMs }),
    ]);
  }

  /** Adds the statements that settle a line; returns what it costs, micro-credits. */
  #settleLine(
    account: BillingRow,
    line: LineRow,
    { moment, statements }: { moment: Moment; statements: Statement[] },
  ): bigint {
    const meter = METERS[line.meter];
    const now = ticksOf(meter, moment.steadyMs);
    const openTicks = BigInt(now) - BigInt(line.level_since);
    const open = BigInt(line.level) * openTicks;
    const quantity = BigInt(line.pending) + open;
    if (quantity === 0n) return 0n;
    const openSince = moment.wallMs - Number(openTicks) * meter.tickMs;
    const settledTo = moment.wallMs - (now - Number(line.settled_to)) * meter.tickMs;
    const parts = [
      ...spreadOverHours(BigInt(line.pending), settledTo, openSince),
      ...spreadOverHours(open, openSince, moment.wallMs),
    ];
    let carry = BigInt(line.carry);
    let cost = 0n;
    for (const part of parts) {
      const { meter: name, resource_id, variant } = line;
      const question = { meter: name, variant, plan: account.plan, at: part.windowStart };
      const priceNano = this.#deps.prices.priceNano(question);
      const charged = charge(meter, { quantity: part.quantity, priceNano, carry });
      carry = charged.carry;
      cost += charged.costMicro;
      statements.push(
        this.#deps.usage.addToWindow({
          ...{ account_id: account.account_id, window_start: part.windowStart, meter: name, resource_id },
          ...{ name: line.name, variant, price_nano: priceNano, quantity: part.quantity },
          cost_micro: charged.costMicro,
        }),
      );
    }
    statements.push(
      this.#deps.usage.settle({ meter: line.meter, resourceId: line.resource_id, now, quantity, carry }),
    );
    return cost;
  }
}
