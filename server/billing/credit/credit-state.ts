/**
 * Tracks accounts that run out of credits, reach their spend cap or are blocked. An account low on credits
 * is warned; then its machines and databases get a grace period, are stopped, and continue once there are
 * credits. At a spend cap they are stopped at once, and continue below a higher cap or in the next month.
 * Those of a suspended account are stopped at once, and continue when it is resumed; those of a
 * closed account are deleted. Each decision is stored before it takes effect, and every effect is
 * idempotent: after a crash the next tick continues.
 */
import { toCredits } from '../../accounts/credits.ts';
import { BACKGROUND, type Changes } from '../../metadata/change.ts';
import type { Statement } from '../../metadata/metadata.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import type { StopCause } from '../../resources/account-stops.ts';
import type { Prices } from '../catalog/prices.ts';
import type { Holds } from '../metering/holds.ts';
import { METER_NAMES, type MeterName } from '../metering/meters.ts';
import type { Rating } from '../metering/rating.ts';
import { monthOf } from '../metering/settlement.ts';
import type { SteadyClock } from '../metering/steady-clock.ts';
import type { UsageStore } from '../metering/usage-store.ts';
import type {
  BillingAccountStore,
  BillingState,
  CreditStateChange,
  CreditStateRow,
} from './billing-account-store.ts';
import {
  burnNanoOf,
  type CreditEvent,
  type CreditFacts,
  creditStateOf,
  eventOf,
  hoursLeft,
  rememberedPrices,
  totalBurnNano,
  unratedMicroOf,
} from './credit.ts';
import { type SpendEvent, type SpendStep, spendData, spendFactsOf, spendStepOf } from './spend-cap.ts';

/** Stops and resumes an account's resources in one domain. Every method is idempotent. */
export interface AccountStops {
  /**
   * Stops running resources and records the cause; deletes everything of a closed account. Resolves when
   * done.
   */
  stop(accountId: number, cause: StopCause): Promise<unknown>;
  /**
   * Starts the resources stopped by stop(), unless the owner closed the account; `waiting`: how
   * many could not be started yet.
   */
  resume(accountId: number): Promise<{ readonly waiting: number }>;
}

export interface CreditStatesDeps {
  readonly changes: Changes;
  readonly clock: Clock;
  readonly steady: SteadyClock;
  readonly store: BillingAccountStore;
  readonly usage: UsageStore;
  readonly prices: Prices;
  readonly rating: Rating;
  readonly holds: Holds;
  /** One per domain with resources to stop. */
  readonly stops: readonly AccountStops[];
  /** Statements that notify the account's webhooks, in the same commit. */
  readonly announce: (event: {
    readonly accountId: number;
    readonly type: CreditEvent | SpendEvent;
    readonly data: Readonly<Record<string, unknown>>;
    readonly at: number;
  }) => readonly Statement[];
  /** How long resources keep running without credits, ms. */
  readonly graceMs: number;
  readonly onError: (accountId: number, what: string, error: unknown) => void;
}

/** An estimate for an account, without charging it. */
interface Estimate {
  readonly plan: string;
  readonly state: BillingState;
  burnNano: bigint;
  freeMicro: bigint;
  unratedMicro: bigint;
}

const PAGE_LINES = 1000;
const PAGE_ACCOUNTS = 500;
/** Evaluated in parallel, so that they share commits. */
const JUDGED_TOGETHER = 64;

export class CreditStates {
  readonly #deps: CreditStatesDeps;
  /** Accounts whose machines and databases are being stopped or started; true: check once more afterwards. */
  readonly #following = new Map<number, boolean>();
  readonly #underWay = new Set<Promise<void>>();
  #isServing = false;

  constructor(deps: CreditStatesDeps) {
    this.#deps = deps;
  }

  /**
   * Enables stopping and starting of machines and databases; an operator's command, which soon ends, does not
   * call it. Begins with earlier decisions, in the background.
   */
  serve(): void {
    this.#isServing = true;
    this.#track(
      this.tick().catch((error: unknown) => this.#deps.onError(0, 'credit states were not checked', error)),
    );
  }

  /** Checks all accounts; rates and evaluates those whose state may have changed. */
  async tick(): Promise<void> {
    const { store, steady, clock } = this.#deps;
    const estimates = await this.#estimateAll();
    const month = monthOf(clock.now());
    const doubtful: number[] = [];
    for (let after = 0; ; ) {
      const rows = await store.watched(month, after, PAGE_ACCOUNTS);
      for (const row of rows) {
        const estimate = estimates.get(row.account_id);
        const { burnNano = 0n, freeMicro = BigInt(row.credits_micro), unratedMicro = 0n } = estimate ?? {};
        estimates.delete(row.account_id);
        const facts = factsOf(row, { burnNano, freeMicro, steadyMs: steady.now() });
        const spentMicro = BigInt(row.spent_micro) + unratedMicro;
        const step = spendStepOf(spendFactsOf(row, month.from, spentMicro));
        if (creditStateOf(facts) !== row.state || isNews(row, step)) doubtful.push(row.account_id);
        else if (mustEnforce(row)) this.#enforce(row.account_id);
        after = row.account_id;
      }
      if (rows.length < PAGE_ACCOUNTS) break;
    }
    for (const accountId of await store.barredInUse()) this.#enforce(accountId);
    for (const [accountId, estimate] of estimates) {
      const facts = { ...estimate, isToppedUp: false, isGraceOver: false };
      if (creditStateOf(facts) !== estimate.state) doubtful.push(accountId);
    }
    for (let at = 0; at < doubtful.length; at += JUDGED_TOGETHER) {
      await Promise.all(doubtful.slice(at, at + JUDGED_TOGETHER).map((id) => this.#judgeOrReport(id)));
    }
  }

  /**
   * Must be called after a commit that added credits. The consequences run in the background. Without
   * serve(), the next tick of the server applies them.
   */
  creditsAdded(accountId: number): void {
    if (this.#isServing) this.#track(this.#judgeOrReport(accountId));
  }

  /**
   * Must be called after a commit that suspended, resumed or closed an account. Works like creditsAdded().
   */
  accountChanged(accountId: number): void {
    if (this.#isServing) this.#enforce(accountId);
  }

  /** Rates an account and sets the state that is due. The consequences run in the background. */
  async evaluate(accountId: number): Promise<void> {
    const { changes, store, rating, holds, steady, clock } = this.#deps;
    await rating.rateUsage(accountId);
    await changes.run(BACKGROUND, async (change) => {
      const month = monthOf(clock.now());
      const row = await store.findState(accountId, month);
      if (row === undefined) return;
      const step = spendStepOf(spendFactsOf(row, month.from));
      if (isNews(row, step)) change.addAll(this.#spendStatements(row, step), 'retry');
      const burnNano = await this.#burnOf(row);
      const freeMicro = BigInt(row.credits_micro);
      const after = creditStateOf(factsOf(row, { burnNano, freeMicro, steadyMs: steady.now() }));
      const isSame = after === row.state;
      if (!isSame) {
        // The balance changed since it was read.
        change.addAll(this.#changeStatements(row, { after, burnNano }), 'retry');
        // The next grace period also requires paid holds.
        const isPaid = row.state === 'grace' && after !== 'suspended';
        if (isPaid) change.addAll(await holds.refill(accountId), 'retry');
      }
      const isTurn = step.isCapped !== isCapped(row) || (!isSame && [after, row.state].includes('suspended'));
      const follows = isTurn || (isSame && mustEnforce(row));
      if (follows) change.after(() => this.#enforce(accountId));
    });
  }

  /** Resolves when no background work is left. */
  async whenIdle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  #changeStatements(
    row: CreditStateRow,
    { after, burnNano }: { readonly after: BillingState; readonly burnNano: bigint },
  ): Statement[] {
    const { clock, steady, store, announce, graceMs } = this.#deps;
    const at = clock.now();
    const isGrace = after === 'grace';
    const change: CreditStateChange = {
      before: row.state,
      after,
      creditsMicro: row.credits_micro,
      at,
      exhaustedAt: isGrace ? at : after === 'suspended' ? row.exhausted_at : null,
      graceEndsAt: isGrace ? at + graceMs : null,
      graceUntil: isGrace ? steady.now() + graceMs : null,
    };
    const freeMicro = BigInt(row.credits_micro);
    const type = eventOf(row.state, after, freeMicro);
    const data = {
      state: after,
      credits: toCredits(freeMicro),
      burn_per_hour: Number(burnNano) / 1e9,
      hours_left: hoursLeft(freeMicro, burnNano),
      ...(change.graceEndsAt === null ? {} : { grace_ends_at: formatTime(change.graceEndsAt) }),
    };
    const events = type === null ? [] : announce({ accountId: row.account_id, type, data, at });
    return [store.changeState(row.account_id, change), ...events];
  }

  /** Stores the step with its events; refused when another node was faster. */
  #spendStatements(row: CreditStateRow, { isCapped: isNow, warn }: SpendStep): Statement[] {
    const { clock, store, announce } = this.#deps;
    const at = clock.now();
    const { from } = monthOf(at);
    const warned = row.warned_from === from ? row.warned_percent : 0;
    const changed = store.changeSpend(row, {
      ownCapMicro: row.own_cap_micro,
      adminCapMicro: row.admin_cap_micro,
      warnPercents: row.warn_percents,
      cappedAt: isNow ? (row.capped_at ?? at) : null,
      warnedFrom: from,
      warnedPercent: warn ?? warned,
    });
    const type = isNow ? 'billing.spend_cap_reached' : 'billing.spend_cap_lifted';
    const events: { readonly type: SpendEvent; readonly percent: number | null }[] = [
      ...(isNow === isCapped(row) ? [] : [{ type, percent: null } as const]),
      ...(warn === null ? [] : [{ type: 'billing.spend_warning', percent: warn } as const]),
    ];
    const accountId = row.account_id;
    return [
      changed,
      ...events.flatMap((one) =>
        announce({ accountId, type: one.type, data: spendData(row, at, one.percent), at }),
      ),
    ];
  }

  async #burnOf({ account_id, plan }: CreditStateRow): Promise<bigint> {
    const { usage, prices, clock } = this.#deps;
    await prices.load();
    const price = rememberedPrices(prices, clock.now());
    let burnNano = 0n;
    for await (const lines of usage.linePages(account_id)) burnNano += totalBurnNano(lines, plan, price);
    return burnNano;
  }

  /** All accounts that currently use credits. */
  async #estimateAll(): Promise<Map<number, Estimate>> {
    const { prices, clock, steady } = this.#deps;
    const estimates = new Map<number, Estimate>();
    await prices.load();
    const price = rememberedPrices(prices, clock.now());
    const steadyMs = steady.now();
    for (const meter of this.#pricedMeters()) {
      await this.#eachLine(meter, (line) => {
        const { plan, variant, state } = line;
        const priceNano = price({ meter, variant, plan });
        if (priceNano === 0n) return;
        const estimate = estimates.get(line.account_id) ?? {
          plan,
          state,
          burnNano: 0n,
          freeMicro: BigInt(line.credits_micro),
          unratedMicro: 0n,
        };
        const unratedMicro = unratedMicroOf(line, { priceNano, steadyMs });
        estimate.burnNano += burnNanoOf(line, priceNano);
        estimate.freeMicro -= unratedMicro;
        estimate.unratedMicro += unratedMicro;
        estimates.set(line.account_id, estimate);
      });
    }
    return estimates;
  }

  async #eachLine(
    meter: MeterName,
    work: (line: Awaited<ReturnType<BillingAccountStore['burning']>>[number]) => void,
  ): Promise<void> {
    for (let after = ''; ; ) {
      const lines = await this.#deps.store.burning(meter, after, PAGE_LINES);
      for (const line of lines) work(line);
      after = lines.at(-1)?.resource_id ?? after;
      if (lines.length < PAGE_LINES) return;
      // Yields to requests.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Lines of other meters, possibly many, are not read. */
  #pricedMeters(): readonly MeterName[] {
    const { prices } = this.#deps;
    const set = new Set(
      prices
        .all()
        .filter((row) => row.price_nano !== 0)
        .map((row) => row.meter),
    );
    const at = this.#deps.clock.now();
    for (const { meter, variant } of prices.priced()) {
      if (prices.priceNano({ meter: meter.name, variant, plan: '', at }) !== 0n) set.add(meter.name);
    }
    return METER_NAMES.filter((name) => set.has(name));
  }

  #judgeOrReport(accountId: number): Promise<void> {
    return this.evaluate(accountId).catch((error: unknown) =>
      this.#deps.onError(accountId, 'the credit state of an account was not evaluated', error),
    );
  }

  /** Stops or starts the resources of an account in the background, one run at a time per account. */
  #enforce(accountId: number): void {
    if (this.#following.has(accountId)) {
      this.#following.set(accountId, true);
      return;
    }
    this.#following.set(accountId, false);
    const work = this.#followUp(accountId)
      .catch((error: unknown) =>
        this.#deps.onError(accountId, 'the resources of an account were not stopped or started', error),
      )
      .then(() => {
        const isAskedAgain = this.#following.get(accountId);
        this.#following.delete(accountId);
        if (isAskedAgain) this.#enforce(accountId);
      });
    this.#track(work);
  }

  async #followUp(accountId: number): Promise<void> {
    const { store, stops, changes, clock } = this.#deps;
    const row = await store.findState(accountId, monthOf(clock.now()));
    if (row === undefined) return;
    const cause = stopCauseOf(row);
    if (cause !== null) {
      await Promise.all(stops.map((each) => each.stop(accountId, cause)));
    } else if (mayResume(row)) {
      const resumed = await Promise.all(stops.map((each) => each.resume(accountId)));
      if (resumed.every(({ waiting }) => waiting === 0)) await changes.store([store.resumed(accountId)]);
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#underWay.delete(tracked));
    this.#underWay.add(tracked);
  }
}

function factsOf(
  row: CreditStateRow,
  { burnNano, freeMicro, steadyMs }: { burnNano: bigint; freeMicro: bigint; steadyMs: number },
): CreditFacts {
  return {
    state: row.state,
    burnNano,
    freeMicro,
    isToppedUp: row.is_topped_up === 1,
    isGraceOver: row.grace_until !== null && row.grace_until <= steadyMs,
  };
}

function mustEnforce(row: CreditStateRow): boolean {
  return stopCauseOf(row) === null ? mayResume(row) : row.is_in_use === 1;
}

/** Why nothing of the account may run; null: it may. */
function stopCauseOf({ is_closed, is_active, state, capped_at }: CreditStateRow): StopCause | null {
  if (is_closed === 1) return 'account_closed';
  if (is_active === 0) return 'account_suspended';
  if (state === 'suspended') return 'credits_exhausted';
  return capped_at === null ? null : 'spend_cap_reached';
}

function isCapped({ capped_at }: Pick<CreditStateRow, 'capped_at'>): boolean {
  return capped_at !== null;
}

/** Whether the step changes the row, or is a due warning. */
function isNews(row: CreditStateRow, step: SpendStep): boolean {
  return step.isCapped !== isCapped(row) || step.warn !== null;
}

/** Without credits, no start would succeed. */
function mayResume({ resume_due, credits_micro, state }: CreditStateRow): boolean {
  return resume_due === 1 && BigInt(credits_micro) > 0n && state !== 'grace';
}
