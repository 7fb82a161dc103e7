/** Spend caps on any metadata engine: accounts are warned, stopped at the cap, and continue below it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type AccountStops, CreditStates } from '../billing/credit/credit-state.ts';
import { SpendCaps } from '../billing/credit/spend-cap.ts';
import { monthOf } from '../billing/metering/settlement.ts';
import { Reports } from '../billing/reports/report.ts';
import { isAppError } from '../platform/errors.ts';
import type { BillingFixtureOptions } from './billing-fixture.ts';
import { HOUR, openCreditStates, PRICE, SECOND } from './credit-state-fixture.ts';

interface Stores {
  /** New, empty metadata. */
  readonly open: () => Promise<BillingFixtureOptions>;
  /** Another node on the metadata of the last call; undefined: there is only one. */
  readonly join?: () => BillingFixtureOptions;
}

const CAP_REACHED = 'billing.spend_cap_reached';

type Fixture = Awaited<ReturnType<typeof openCapped>>;

/** With one running machine at PRICE an hour, from the first moment of a month. */
async function openCapped(capMicro: bigint | null, options: BillingFixtureOptions) {
  const fixture = await openCreditStates(100_000n * PRICE, options);
  const { clock, metadata, store, machines } = fixture;
  clock.advance(monthOf(clock.now()).to - clock.now());
  const setCap = (own: bigint | null, admin: bigint | null = null) =>
    metadata.commit([
      {
        sql: 'UPDATE billing_accounts SET own_cap_micro = ?, admin_cap_micro = ? WHERE account_id = 1',
        params: [own, admin],
      },
    ]);
  await setCap(capMicro);
  await machines.create('vm-1');
  await machines.start('vm-1');
  const spend = async () => {
    const row = await store.findSpend(1, monthOf(clock.now()));
    assert.ok(row);
    return row;
  };
  const caps = () => new SpendCaps({ ...fixture, accounts: store });
  const isRefused = async () => {
    const outcome = await caps()
      .assertBelow(await fixture.row())
      .catch((error: unknown) => error);
    assert.ok(outcome === undefined || isAppError(outcome, 'spend_cap_reached'), String(outcome));
    return outcome !== undefined;
  };
  return { ...fixture, setCap, spend, caps, isRefused };
}

/** The month's cost as in the report, micro-credits. */
async function reported({ metadata, clock, rating }: Fixture): Promise<number> {
  const report = await new Reports({ metadata, clock, rating }).usage(1, monthOf(clock.now()));
  return Math.round(Number(report.total_cost) * 1e6);
}

export function testSpendCaps(name: string, stores: Stores): void {
  describe(`${name}: spend caps`, () => {
    testAMonth(stores);
    testCounts(stores);
    testWhatGoesOn(stores);
    testWhatDoesNot(stores);
  });
}

function testAMonth({ open }: Stores): void {
  test('warned at each threshold once, stopped at the cap, and started again in the next month', async (t) => {
    const fixture = await openCapped(10n * PRICE, await open());
    t.after(fixture.close);
    const { clock, tick, announced, machines, isRefused } = fixture;
    clock.advance(5 * HOUR - SECOND);
    await tick();
    assert.deepEqual(announced, []);
    clock.advance(SECOND);
    for (let i = 0; i < 3; i++) await tick();
    clock.advance(3 * HOUR);
    for (let i = 0; i < 3; i++) await tick();
    assert.deepEqual(announced, ['billing.spend_warning 50', 'billing.spend_warning 80']);
    assert.equal(await isRefused(), false);
    clock.advance(2 * HOUR);
    assert.equal(await isRefused(), true, 'before any tick');
    for (let i = 0; i < 3; i++) await tick();
    assert.deepEqual(announced.slice(2), ['billing.spend_cap_reached']);
    assert.deepEqual([machines.running.size, machines.stops], [0, ['spend_cap_reached']]);
    assert.equal(await fixture.state(), 'ok', 'which is another thing than its credits');
    clock.advance(monthOf(clock.now()).to - clock.now() - 1);
    await tick();
    assert.deepEqual([machines.running.size, await isRefused()], [0, true]);
    clock.advance(1);
    assert.equal(await isRefused(), false, 'at the turn of the month');
    await tick();
    assert.deepEqual([[...machines.running], announced.slice(3)], [['vm-1'], ['billing.spend_cap_lifted']]);
    clock.advance(5 * HOUR);
    await tick();
    assert.deepEqual(announced.slice(4), ['billing.spend_warning 50'], 'again in this month');
  });
}

function testCounts({ open }: Stores): void {
  test('what was spent is the month of the report, rated or not, across the turn of the month', async (t) => {
    const fixture = await openCapped(1000n * PRICE, await open());
    t.after(fixture.close);
    const { clock, caps, rating, spend } = fixture;
    const spent = async () => Number((await caps().of(1))?.spentMicro);
    clock.advance(HOUR / 3);
    assert.deepEqual([await spent(), Number((await spend()).spent_micro)], [await reported(fixture), 0]);
    await rating.rateUsage(1);
    assert.equal(Number((await spend()).spent_micro), Number(PRICE) / 3);
    // Half an hour of each month, rated after the turn of the month.
    clock.advance(monthOf(clock.now()).to - clock.now() - HOUR / 2);
    await rating.rateUsage(1);
    clock.advance(HOUR);
    assert.deepEqual([await spent(), await spent()], [Number(PRICE) / 2, await reported(fixture)]);
    await rating.rateUsage(1);
    assert.deepEqual(
      [await spent(), Number((await spend()).spent_micro)],
      [Number(PRICE) / 2, Number(PRICE) / 2],
    );
  });

  test('a rating that did not count, by an earlier version, is counted by the windows', async (t) => {
    const fixture = await openCapped(1000n * PRICE, await open());
    t.after(fixture.close);
    const { clock, rating, metadata, spend } = fixture;
    clock.advance(HOUR);
    await rating.rateUsage(1);
    await metadata.commit([
      {
        sql: 'UPDATE billing_accounts SET spent_settlement = spent_settlement - 1, spent_micro = 5',
        params: [],
      },
    ]);
    assert.equal(Number((await spend()).spent_micro), Number(PRICE));
    clock.advance(HOUR);
    await rating.rateUsage(1);
    assert.equal(Number((await spend()).spent_micro), 2 * Number(PRICE));
  });
}

function testWhatGoesOn({ open, join }: Stores): void {
  test('a higher cap, or none, lets everything go on; the lower of both holds', async (t) => {
    const fixture = await openCapped(10n * PRICE, await open());
    t.after(fixture.close);
    const { clock, tick, machines, setCap, isRefused } = fixture;
    clock.advance(10 * HOUR);
    await tick();
    assert.equal(machines.running.size, 0);
    await setCap(50n * PRICE, 9n * PRICE);
    await tick();
    assert.deepEqual([machines.running.size, await isRefused()], [0, true]);
    await setCap(50n * PRICE, 40n * PRICE);
    await tick();
    assert.deepEqual([machines.running.size, await isRefused()], [1, false]);
    clock.advance(30 * HOUR);
    await tick();
    assert.equal(machines.running.size, 0);
    await setCap(null, null);
    await tick();
    assert.deepEqual([machines.running.size, await isRefused()], [1, false]);
  });

  test('two nodes and a kill after any commit: each is told once', async (t) => {
    const fixture = await openCapped(10n * PRICE, await open());
    t.after(fixture.close);
    const { clock, deps, machines, metadata, tick } = fixture;
    const other = join === undefined ? fixture : await openCreditStates(0n, { ...join(), clock });
    if (other !== fixture) t.after(other.close);
    // Events are stored for webhooks only.
    await metadata.commit([
      {
        sql: `INSERT INTO webhooks (webhook_id, account_id, url, description, events, sealed_secret, created_at)
              VALUES ('w', 1, '', '', '["*"]', ?, 0)`,
        params: [new Uint8Array(1)],
      },
    ]);
    const never: AccountStops = { stop: () => new Promise(() => {}), resume: () => new Promise(() => {}) };
    const bothTick = () =>
      Promise.all([1, 2].map(() => new CreditStates({ ...deps, stops: [never] }).tick()));
    for (const hours of [5, 3, 2]) {
      clock.advance(hours * HOUR);
      await bothTick();
      await bothTick();
    }
    const events = await metadata.all<{ type: string }>('SELECT type FROM webhook_events ORDER BY id');
    const warning = 'billing.spend_warning';
    assert.deepEqual(
      events.map(({ type }) => type),
      [warning, warning, 'billing.spend_cap_reached'],
    );
    assert.equal(machines.running.size, 1, 'killed before it was stopped');
    await tick();
    assert.equal(machines.running.size, 0);
  });

  test('a suspension and the cap: what either stopped starts when both are gone', async (t) => {
    const fixture = await openCapped(10n * PRICE, await open());
    t.after(fixture.close);
    const { clock, tick, machines, setCap, metadata, store, nudge } = fixture;
    const setActive = (active: number) =>
      metadata.commit([
        { sql: 'UPDATE accounts SET is_active = ? WHERE id = 1', params: [active] },
        ...(active === 1 ? [store.resumeDue(1)] : []),
      ]);
    clock.advance(10 * HOUR);
    await tick();
    await setActive(0);
    await nudge();
    await setCap(null);
    await tick();
    assert.equal(machines.running.size, 0);
    await setActive(1);
    await nudge();
    assert.equal(machines.running.size, 1);
  });
}

function testWhatDoesNot({ open }: Stores): void {
  test('credits that are added at the cap start nothing; a higher cap does, once there are credits', async (t) => {
    const fixture = await openCapped(10n * PRICE, await open());
    t.after(fixture.close);
    const { clock, tick, machines, setCap, added, announced, isRefused, spendAll } = fixture;
    clock.advance(10 * HOUR);
    await tick();
    await added(1000n * PRICE);
    await tick();
    assert.deepEqual([machines.running.size, await isRefused()], [0, true]);
    assert.deepEqual(
      announced.filter((one) => one.includes('lifted')),
      [],
    );
    // Conversely: the cap is removed first, and the credits are granted later.
    await spendAll();
    await setCap(null);
    await tick();
    assert.equal(machines.running.size, 0, 'without credits');
    await added(100n * PRICE);
    await tick();
    assert.deepEqual([machines.running.size, await isRefused()], [1, false]);
  });

  test('a cap below what is spent already holds at once, one of nothing from the first moment', async (t) => {
    const fixture = await openCapped(null, await open());
    t.after(fixture.close);
    const { clock, tick, machines, setCap, announced, isRefused } = fixture;
    clock.advance(4 * HOUR);
    await setCap(3n * PRICE);
    await tick();
    assert.deepEqual([machines.running.size, await isRefused(), announced], [0, true, [CAP_REACHED]]);
    await setCap(0n);
    await tick();
    assert.deepEqual([machines.running.size, announced.length], [0, 1], 'told once');
    clock.advance(monthOf(clock.now()).to - clock.now());
    await tick();
    // Nothing is spent in the new month, and nothing can be.
    assert.deepEqual([machines.running.size, await isRefused()], [0, true]);
    await setCap(1n);
    await tick();
    assert.equal(await isRefused(), false);
    await tick();
    clock.advance(SECOND);
    await tick();
    assert.deepEqual(
      [machines.running.size, await isRefused()],
      [0, true],
      'a millionth is spent within a second',
    );
  });
}
