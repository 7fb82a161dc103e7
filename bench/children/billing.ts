/**
 * Fills a database with months of billing and runs the work of a cloud on it: verifies the ledger, checks it
 * like every minute, rates an hour of all machines, creates a report. In its own process, whose CPU time is
 * measured.
 */
import { CatalogStore } from '../../server/billing/catalog/catalog-store.ts';
import { Prices } from '../../server/billing/catalog/prices.ts';
import { BillingAccountStore } from '../../server/billing/credit/billing-account-store.ts';
import { Checks } from '../../server/billing/ledger/checks.ts';
import { LedgerStore } from '../../server/billing/ledger/ledger-store.ts';
import { Rating } from '../../server/billing/metering/rating.ts';
import { SteadyClock } from '../../server/billing/metering/steady-clock.ts';
import { UsageStore } from '../../server/billing/metering/usage-store.ts';
import { Reports } from '../../server/billing/reports/report.ts';
import { readPeriod } from '../../server/billing/reports/report-period.ts';
import { SqliteMetadata } from '../../server/drivers/metadata-sqlite/sqlite-metadata.ts';
import { AGELESS } from '../../server/metadata/ages.ts';
import { Bus } from '../../server/metadata/bus.ts';
import { Changes } from '../../server/metadata/change.ts';
import { Alarms } from '../../server/platform/alarms.ts';
import { FakeClock, systemClock } from '../../server/platform/clock.ts';
import { type BillingFilling, fillBilling } from '../billing-filling.ts';
import { childInput } from '../child.ts';

const REPORTS = 20;
const CHECKS = 10;
const HOUR_MS = 3_600_000;

const { directory, ...filling } = childInput<BillingFilling & { directory: string }>();
const alarms = new Alarms(systemClock);
const openDatabase = () => SqliteMetadata.open({ directory, clock: systemClock, alarms });
await (await openDatabase()).close();
const clock = new FakeClock(systemClock.now());
const first = fillBilling(directory, filling, clock.now());
const metadata = await openDatabase();

const accounts = new BillingAccountStore(metadata);
const ledger = new LedgerStore(metadata);
const catalog = new CatalogStore(metadata);
const builtIn = [{ meter: 'vm.time' as const, variant: 't2.micro', priceNano: 11_600_000 }];
const prices = new Prices({ ages: AGELESS, bus: new Bus(), store: catalog, clock, builtIn });
await prices.load();
const steady = new SteadyClock({ clock, bootId: 'bench', anchor: null });
const stores = { usage: new UsageStore(metadata), accounts };
const rating = new Rating({ changes: new Changes({ metadata }), clock, steady, prices, ...stores });
const checks = new Checks({
  alarms,
  clock: systemClock,
  store: ledger,
  rateUsage: (accountId) => rating.rateUsage(accountId),
  onError: (error) => {
    throw error;
  },
});
const reports = new Reports({ clock, metadata, rating });

/** CPU seconds of the whole process, all threads. */
async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

const verifyCpu = await cpuOf(async () => {
  checks.startVerification();
  await checks.untilIdle();
});
const { checked, seconds, problem } = checks.verification();
const checkCpu = await cpuOf(async () => {
  for (let i = 0; i < CHECKS; i++) await checks.check();
});
clock.advance(HOUR_MS);
let settled = 0;
const rateCpu = await cpuOf(async () => {
  settled = await rating.rateAll();
});
await checks.check();
const times: number[] = [];
for (let i = 0; i < REPORTS; i++) {
  clock.advance(2000);
  const began = performance.now();
  JSON.stringify(await reports.usage(first, readPeriod({}, clock.now())));
  times.push(performance.now() - began);
}
await metadata.close();
console.log(
  JSON.stringify({
    times,
    checked,
    seconds,
    verifyCpu,
    settled,
    rateCpu,
    checkCpu: checkCpu / CHECKS,
    problem: problem ?? alarms.list()[0]?.detail ?? null,
  }),
);
