/** Shows and sets spend caps: the owner's own, and an administrator's for any account. */
import { accountNotFound } from '../../accounts/account-errors.ts';
import { toCredits, toMicro } from '../../accounts/credits.ts';
import type { Change, Changes, Recorder } from '../../metadata/change.ts';
import { type Clock, formatTime, formatTimeOrNull } from '../../platform/clock.ts';
import type { Prices } from '../catalog/prices.ts';
import { monthOf } from '../metering/settlement.ts';
import { creditsOf, formatMonth } from '../reports/report-period.ts';
import type { SpendCap, SpendCapChange } from '../spend-schema.ts';
import type { BillingAccountStore, SpendRow } from './billing-account-store.ts';
import { rememberedPrices, totalBurnNano } from './credit.ts';
import { reachedAt, reachedPercent, readPercents, type Spend, type SpendCaps } from './spend-cap.ts';

export interface SpendLimitsDeps {
  readonly changes: Changes;
  readonly accounts: BillingAccountStore;
  readonly caps: Pick<SpendCaps, 'of'>;
  readonly prices: Prices;
  readonly clock: Clock;
  /** Called after the commit: stops or restarts the account's resources. */
  readonly capChanged: (accountId: number) => void;
}

interface Wanted {
  readonly own?: number | null | undefined;
  readonly admin?: number | null | undefined;
  readonly warnPercents?: readonly number[] | undefined;
}

const HOUR_MS = 3_600_000;
const NANO_PER_MICRO = 1000n;

export class SpendLimits {
  readonly #deps: SpendLimitsDeps;

  constructor(deps: SpendLimitsDeps) {
    this.#deps = deps;
  }

  /** Throws `account_not_found`. */
  async of(accountId: number): Promise<SpendCap> {
    return this.#describe(await this.#spendOf(accountId));
  }

  /** Throws `account_not_found`, `invalid_request`. */
  setOwn(call: Recorder, accountId: number, { cap, warn_percent }: SpendCapChange): Promise<SpendCap> {
    return this.#deps.changes.run(call, async (change) => {
      const wanted = { own: cap, warnPercents: warn_percent };
      return this.#describe(await this.#change(change, accountId, wanted));
    });
  }

  /** Adds an administrator's cap to a commit. Throws like setOwn(). */
  async setByAdministrator(change: Change, accountId: number, cap: number | null): Promise<void> {
    await this.#change(change, accountId, { admin: cap });
  }

  /** The spending as it is after the commit. */
  async #change(change: Change, accountId: number, { own, admin, warnPercents }: Wanted): Promise<Spend> {
    const spend = await this.#spendOf(accountId);
    const { row, spentMicro, at } = spend;
    const ownCapMicro = own === undefined ? row.own_cap_micro : microOf(own, 'cap');
    const adminCapMicro = admin === undefined ? row.admin_cap_micro : microOf(admin, 'spend_cap');
    const percents = (warnPercents ?? readPercents(row.warn_percents)).toSorted((a, b) => a - b);
    const capMicro = lowerOf(ownCapMicro, adminCapMicro);
    const after = {
      own_cap_micro: ownCapMicro,
      admin_cap_micro: adminCapMicro,
      cap_micro: capMicro,
      warn_percents: percents.join(','),
    };
    const { from } = monthOf(at);
    const isSame =
      String(row.cap_micro) === String(capMicro) &&
      row.warn_percents === after.warn_percents &&
      row.warned_from === from;
    // The caller sees which thresholds are passed already, so no warning follows.
    const passed = capMicro === null ? 0 : reachedPercent(BigInt(capMicro), spentMicro, percents);
    const warnedPercent = isSame ? row.warned_percent : passed;
    const stored = { ownCapMicro, adminCapMicro, warnPercents: after.warn_percents, cappedAt: row.capped_at };
    change.add(this.#deps.accounts.changeSpend(row, { ...stored, warnedFrom: from, warnedPercent }), 'retry');
    change.forgets({ kind: 'account', id: accountId });
    change.after(() => this.#deps.capChanged(accountId));
    return { ...spend, row: { ...row, ...after } };
  }

  async #spendOf(accountId: number): Promise<Spend> {
    const spend = await this.#deps.caps.of(accountId);
    if (spend === undefined) throw accountNotFound();
    return spend;
  }

  async #describe({ row, plan, unrated, spentMicro, at }: Spend): Promise<SpendCap> {
    const { prices } = this.#deps;
    await prices.load();
    const burnNano = totalBurnNano(unrated.lines, plan, rememberedPrices(prices, at));
    const { to } = monthOf(at);
    const atEnd = spentMicro + (burnNano * BigInt(to - at)) / (BigInt(HOUR_MS) * NANO_PER_MICRO);
    const capMicro = row.cap_micro === null ? null : BigInt(row.cap_micro);
    const isReached = capMicro !== null && spentMicro >= capMicro;
    return {
      account_id: row.account_id,
      month: formatMonth(at),
      cap: creditsOrNull(row.cap_micro),
      own_cap: creditsOrNull(row.own_cap_micro),
      administrator_cap: creditsOrNull(row.admin_cap_micro),
      warn_percent: readPercents(row.warn_percents),
      spent: creditsOf(spentMicro),
      percent: capMicro === null ? null : percentOf(spentMicro, capMicro),
      month_end: creditsOf(atEnd),
      is_reached: isReached,
      reached_since: isReached ? formatTimeOrNull(row.capped_at) : null,
      expected_at: isReached ? null : reachedAt({ capMicro, spentMicro, burnNano, at, to }),
      resets_at: formatTime(to),
    };
  }
}

type Micro = SpendRow['cap_micro'];

function lowerOf(one: Micro, other: Micro): Micro {
  if (one === null || other === null) return one ?? other;
  return BigInt(one) < BigInt(other) ? one : other;
}

function microOf(cap: number | null, field: 'cap' | 'spend_cap'): number | null {
  return cap === null ? null : toMicro(cap, field);
}

function creditsOrNull(micro: Micro): number | null {
  return micro === null ? null : toCredits(micro);
}

/** Percentage with two decimals, rounded down: 100 means that the cap is reached. */
function percentOf(spent: bigint, cap: bigint): number {
  return cap === 0n ? 100 : Number((spent * 10_000n) / cap) / 100;
}
