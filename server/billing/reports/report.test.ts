import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Metadata } from '../../metadata/metadata.ts';
import { type BillingFixture, openBillingFixture } from '../../testing/billing-fixture.ts';
import { cases } from '../../testing/cases.ts';
import { transferStatements } from '../ledger/ledger.ts';
import { LedgerStore } from '../ledger/ledger-store.ts';
import { estimate } from './estimate.ts';
import { Reports, revenueReport, type UsageReport } from './report.ts';
import { LedgerReports } from './report-ledger.ts';
import { creditsOf, decimalText, type Figure, quantityOf, readPeriod } from './report-period.ts';

const VM = { vm_id: 'vm-1', account_id: 1, name: 'web', instance_type: 't2.micro', disk_gb: 30 };
const BUCKET = { id: 7, account_id: 1, name: 'photos' };

/** Reported amounts converted back to micro-credits, exactly. */
function micro(figure: Figure): bigint {
  const text = typeof figure === 'number' ? figure.toFixed(6) : figure;
  return BigInt(text.replace('.', ''));
}

const sum = (figures: readonly Figure[]) => figures.reduce((total, figure) => total + micro(figure), 0n);

/** Calls `before` with each query of a snapshot, and waits for it. */
function watched({ metadata, clock, rating }: BillingFixture, before: (sql: string) => unknown) {
  const snapshot: Metadata['snapshot'] = (work) =>
    metadata.snapshot((reads) =>
      work({
        get: async (sql, ...params) => {
          await before(sql);
          return reads.get(sql, ...params);
        },
        all: async (sql, ...params) => {
          await before(sql);
          return reads.all(sql, ...params);
        },
      }),
    );
  const get = metadata.get.bind(metadata);
  const all = metadata.all.bind(metadata);
  const commit = metadata.commit.bind(metadata);
  return { metadata: { get, all, commit, close: metadata.close.bind(metadata), snapshot }, clock, rating };
}

function open(fixture: Pick<BillingFixture, 'clock' | 'rating'> & { readonly metadata: Metadata }) {
  const store = new LedgerStore(fixture.metadata);
  const reports = new Reports({ metadata: fixture.metadata, clock: fixture.clock, rating: fixture.rating });
  const everything = () => readPeriod({ from: '2026-01-01', to: '2027-01-01' }, fixture.clock.now());
  const usage = () => reports.usage(1, everything());
  return { store, reports, usage, everything, ledger: new LedgerReports({ store }) };
}

test('figures are exact decimals; what a double does not hold is text', () => {
  const cases: [bigint, Figure][] = [
    [0n, 0],
    [1n, 0.000001],
    [-1n, -0.000001],
    [10_000_000n, 10],
    [2n ** 53n, 9007199254.740992],
    [10n ** 16n + 1n, '10000000000.000001'],
    [-(2n ** 62n), '-4611686018427.387904'],
  ];
  for (const [value, figure] of cases) assert.equal(creditsOf(value), figure);
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }), (value) => {
      assert.equal(micro(creditsOf(value)), value);
      // Also after a round trip through JSON.
      assert.equal(micro(JSON.parse(JSON.stringify(creditsOf(value)))), value);
    }),
  );
  assert.equal(decimalText(-1_234_567n, 6), '-1.234567');
  assert.equal(quantityOf('vm.time', 90_000n), 0.025);
});

/** Items are sorted by the time of their charge. */
function inOrder(report: UsageReport): UsageReport {
  const items = report.items.map((item) => JSON.stringify(item)).sort();
  return { ...report, items: items.map((item) => JSON.parse(item)) };
}

/** The report once everything is charged; before that, it shows the same, and reading charges nothing. */
async function chargedReport(fixture: BillingFixture): Promise<UsageReport> {
  const { store, usage: report } = open(fixture);
  const before = await store.lastSeq();
  const uncharged = await report();
  const { spendable, held } = await estimate(fixture, 1);
  assert.equal(micro(spendable) + micro(held), micro(uncharged.credits.balance));
  assert.equal(await store.lastSeq(), before, 'reading charges nothing');
  await fixture.rating.rateUsage(1);
  const charged = await report();
  assert.deepEqual(inOrder(charged), inOrder(uncharged));
  return charged;
}

/** Everything that can happen to an account. */
const STEP = fc.record({
  advance: fc.integer({ min: 0, max: 20_000_000 }),
  what: fc.constantFrom('start', 'stop', 'put', 'send', 'settle', 'grant', 'take', 'late', 'report'),
  amount: fc.integer({ min: 1, max: 10 ** 9 }),
});

/** The second start relies on credits that a late stop only returns with the next charge. */
const STARTED_BEFORE_A_REFUND: (typeof STEP extends fc.Arbitrary<infer Step> ? Step : never)[] = [
  { advance: 0, what: 'start', amount: 1 },
  { advance: 11_910_414, what: 'late', amount: 1 },
  { advance: 0, what: 'take', amount: 1 },
  { advance: 0, what: 'start', amount: 1 },
  { advance: 0, what: 'start', amount: 1 },
];

test('granted − used = balance, items = days = total, and all of it is in the ledger', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { minLength: 5, maxLength: 20 }), async (steps) => {
      const fixture = await openBillingFixture({ creditsMicro: 50_000n });
      const { clock, metadata, usage, rating, holds } = fixture;
      const { ledger, store, everything } = open(fixture);
      let runsSince: number | null = null;
      let taken = 0;
      const check = async () => {
        const { credits, total_cost, items, daily } = await chargedReport(fixture);
        assert.equal(micro(credits.granted) - micro(credits.used), micro(credits.balance));
        const row = await fixture.row();
        assert.equal(micro(credits.balance), BigInt(row.credits_micro) + BigInt(row.held_micro));
        const total = micro(total_cost);
        assert.equal(sum(items.map(({ cost }) => cost)), total);
        assert.equal(sum(daily.map(({ cost }) => cost)), total);
        for (const day of daily)
          assert.equal(sum([day.compute, day.storage, day.egress]), micro(day.cost), day.date);
        assert.equal(micro(credits.used) + micro(credits.written_off ?? 0), total);
        const entries = [];
        for await (const { entry } of ledger.list(1, { before: 0, limit: Number.POSITIVE_INFINITY }))
          entries.push(entry);
        assert.equal(sum(entries.map(({ amount }) => amount)), micro(credits.balance));
        for (const [i, entry] of entries.entries())
          assert.equal(sum(entries.slice(i).map(({ amount }) => amount)), micro(entry.balance));
        const revenue = (await revenueReport(store, everything())).total;
        assert.equal(micro(revenue.total), total);
        assert.equal(micro(revenue.written_off), micro(credits.written_off ?? 0));
        const statement = await ledger.statement(1, everything());
        assert.equal(micro(statement.closing_balance), micro(credits.balance));
      };
      try {
        await metadata.commit([...usage.vmCreated(VM), ...usage.bucketCreated(BUCKET)]);
        for (const { advance, what, amount } of steps) {
          clock.advance(advance);
          if (what === 'start' && runsSince === null) {
            const held = await holds.place(VM).catch(() => []);
            await metadata.commit([...held, ...usage.vmStarted(VM, clock.now())]);
            runsSince = clock.now();
          }
          if ((what === 'stop' || what === 'late') && runsSince !== null) {
            const end = what === 'late' ? Math.max(runsSince, clock.now() - 7_000_000) : clock.now();
            await rating.rateUsage(1);
            await metadata.commit([...(await holds.release(VM)), ...usage.vmStopped(VM, end)]);
            runsSince = null;
          }
          if (what === 'put') await metadata.commit([usage.bucketChanged(BUCKET.id, amount)]);
          if (what === 'send') await metadata.commit([usage.bucketSent(BUCKET.id, amount)]);
          if (what === 'settle') await rating.rateUsage(1);
          if (what === 'grant') await fixture.grant(1, BigInt(amount));
          if (what === 'take' && BigInt((await fixture.row()).credits_micro) > 10n) {
            const sides = { debit: 'account:1', credit: 'system:grants', amountMicro: 10n };
            const rest = { code: 'admin_withdrawal', reference: 'test', at: clock.now() };
            await metadata.commit(transferStatements({ id: `take-${taken++}`, ...sides, ...rest }));
          }
          if (what === 'report') await check();
        }
        await check();
      } finally {
        await fixture.close();
      }
    }),
    { numRuns: cases(8), examples: [[STARTED_BEFORE_A_REFUND]] },
  );
});

test('a report has the open window, days without use, and a bucket by its name', async (t) => {
  const fixture = await openBillingFixture();
  t.after(fixture.close);
  const { clock, metadata, usage } = fixture;
  const { reports } = open(fixture);
  await metadata.commit([...usage.vmCreated({ ...VM, disk_gb: 0 }), ...usage.bucketCreated(BUCKET)]);
  await metadata.commit([...usage.vmStarted(VM, clock.now()), usage.bucketSent(BUCKET.id, 2 ** 30)]);
  clock.advance(90_000);
  const period = readPeriod({}, clock.now());
  const first = await reports.usage(1, period);
  const cost = 0.00029;
  assert.deepEqual(first.items, [
    {
      resource_type: 'bucket',
      resource_id: 'photos',
      name: 'photos',
      meter: 'egress',
      quantity: 1,
      unit: 'GB',
      unit_price: 0.090000001,
      cost: 0.09,
    },
    {
      resource_type: 'vm',
      resource_id: 'vm-1',
      name: 'web',
      meter: 'vm.time',
      quantity: 0.025,
      unit: 'hour',
      unit_price: 0.0116,
      cost,
    },
  ]);
  assert.equal(first.total_cost, 0.09029);
  assert.deepEqual(first.daily, [
    { date: '2026-01-01', cost: 0.09029, compute: cost, storage: 0, egress: 0.09, databases: 0 },
  ]);
  clock.advance(3 * 24 * 3_600_000);
  await metadata.commit(usage.vmStopped(VM, clock.now()));
  clock.advance(24 * 3_600_000);
  const { daily } = await reports.usage(1, period);
  assert.deepEqual(
    daily.map(({ date }) => date),
    ['2026-01-01', '2026-01-02', '2026-01-03', '2026-01-04', '2026-01-05'],
  );
  assert.equal(daily.at(-1)?.cost, 0);
  await assert.rejects(reports.usage(99, period), /no such account/);
});

test('days that are over are read in turns of the event loop of their own', async (t) => {
  const fixture = await openBillingFixture();
  t.after(fixture.close);
  let turn = 0;
  let counting = setImmediate(function count() {
    turn++;
    counting = setImmediate(count);
  });
  t.after(() => clearImmediate(counting));
  const turns: number[] = [];
  const { reports } = open(
    watched(fixture, (sql) => {
      if (sql.includes('usage_windows')) turns.push(turn);
    }),
  );
  fixture.clock.advance(3 * 24 * 3_600_000);
  await reports.usage(1, readPeriod({}, fixture.clock.now()));
  assert.equal(turns.length, 4);
  assert.equal(new Set(turns).size, 4);
});

test('usage that is charged while a report is read counts once', async (t) => {
  const fixture = await openBillingFixture({ creditsMicro: 11_600n * 48n });
  t.after(fixture.close);
  const { metadata, usage, clock, rating } = fixture;
  await metadata.commit(usage.vmCreated({ ...VM, disk_gb: 0 }));
  await metadata.commit(usage.vmStarted(VM, clock.now()));
  clock.advance(3_600_000);
  const before = await open(fixture).usage();
  let charged: Promise<void> | undefined;
  const { usage: report } = open(
    watched(fixture, (sql) => {
      if (sql.includes('usage_windows')) charged ??= rating.rateUsage(1);
      return charged;
    }),
  );
  const during = await report();
  assert.equal(before.total_cost, 0.0116);
  assert.deepEqual([during.total_cost, during.credits], [before.total_cost, before.credits]);
});

test('a month of much storage is beyond 64 bits and still exact', async (t) => {
  const fixture = await openBillingFixture({ creditsMicro: 2n ** 53n });
  t.after(fixture.close);
  const { clock, metadata, usage, rating } = fixture;
  const { usage: report } = open(fixture);
  await metadata.commit(usage.bucketCreated(BUCKET));
  await metadata.commit([usage.bucketChanged(BUCKET.id, 2 ** 50)]);
  for (let hour = 0; hour < 48; hour++) {
    clock.advance(3_600_000);
    await rating.rateUsage(1);
  }
  const item = (await report()).items.find(({ meter }) => meter === 'storage');
  assert.equal(item?.quantity, 2 ** 20 * 48);
});

test('an estimate tells what runs now and how long it can', async (t) => {
  const fixture = await openBillingFixture({ creditsMicro: 11_600n * 48n });
  t.after(fixture.close);
  const { metadata, usage, clock } = fixture;
  const ask = () => estimate(fixture, 1);
  await metadata.commit(usage.vmCreated({ ...VM, disk_gb: 0 }));
  assert.deepEqual([(await ask()).days_left, (await ask()).items], [null, []]);
  await metadata.commit(usage.vmStarted(VM, clock.now()));
  const { items, ...rest } = await ask();
  assert.deepEqual(rest, {
    account_id: 1,
    currency: 'credits',
    per_hour: 0.0116,
    per_day: 0.2784,
    per_month: 8.468,
    spendable: 0.5568,
    held: 0,
    days_left: 2,
  });
  assert.deepEqual(
    items.map(({ resource_id, quantity, per_hour }) => [resource_id, quantity, per_hour]),
    [['vm-1', 1, 0.0116]],
  );
});
