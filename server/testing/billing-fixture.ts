/** Billing on a real database, with a fake clock. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CatalogStore } from '../billing/catalog/catalog-store.ts';
import { type BuiltInPrice, Prices } from '../billing/catalog/prices.ts';
import { BillingAccountStore } from '../billing/credit/billing-account-store.ts';
import { Spendable } from '../billing/credit/credit.ts';
import { Ledger, transferStatements } from '../billing/ledger/ledger.ts';
import { Holds } from '../billing/metering/holds.ts';
import { Rating } from '../billing/metering/rating.ts';
import { Usage } from '../billing/metering/resource-charges.ts';
import { SteadyClock } from '../billing/metering/steady-clock.ts';
import { UsageStore } from '../billing/metering/usage-store.ts';
import { AGELESS } from '../metadata/ages.ts';
import { Bus } from '../metadata/bus.ts';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { Alarms } from '../platform/alarms.ts';
import { type Clock, FakeClock } from '../platform/clock.ts';
import { openTestMetadata } from './new-metadata.ts';

/** t2.micro as in the catalogue; storage and traffic at prices that leave remainders. */
const TEST_PRICES: readonly BuiltInPrice[] = [
  { meter: 'vm.time', variant: 't2.micro', priceNano: 11_600_000 },
  { meter: 'vm.time', variant: 'p3.2xlarge', priceNano: 3_060_000_000 },
  { meter: 'vm.disk', variant: 't2.micro', priceNano: 137 },
  { meter: 'storage', variant: '', priceNano: 31_507 },
  { meter: 'egress', variant: '', priceNano: 90_000_001 },
  { meter: 'database.storage', variant: 'sqlite', priceNano: 50_003 },
];

export type BillingFixture = Awaited<ReturnType<typeof openBillingFixture>>;

export interface BillingFixtureOptions {
  readonly creditsMicro?: bigint;
  /** Default: SQLite in a new directory. */
  readonly openMetadata?: (clock: Clock) => Promise<Metadata>;
  /** An additional node on the same metadata, with the other's clock and without a new account. */
  readonly clock?: FakeClock;
}

/** With account 1, which was granted `creditsMicro`. */
export async function openBillingFixture(options: BillingFixtureOptions = {}) {
  const { creditsMicro = 10_000_000n, clock = new FakeClock() } = options;
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-billing-'));
  const openSqlite = () => openTestMetadata({ directory, clock, alarms: new Alarms(clock) });
  const metadata = await (options.openMetadata ?? openSqlite)(clock);
  const accounts = new BillingAccountStore(metadata);
  const usageStore = new UsageStore(metadata);
  const catalog = new CatalogStore(metadata);
  const steady = new SteadyClock({ clock, bootId: 'boot', anchor: null });
  const bus = new Bus();
  const of = { bus, ages: AGELESS };
  const prices = new Prices({ store: catalog, clock, builtIn: TEST_PRICES, ...of });
  const usage = new Usage({ store: usageStore, steady });
  const shared = { ...of, changes: new Changes({ metadata, bus }), clock, steady, prices, accounts };
  const rating = new Rating({ ...shared, usage: usageStore });
  const spendable = new Spendable({ ...shared, rating });
  const holds = new Holds({ ...shared, spendable, store: usageStore });
  const ledger = new Ledger({ metadata });
  const addAccount = async (micro: bigint): Promise<number> => {
    await metadata.commit([
      {
        sql: "INSERT INTO accounts (username, email, password_hash, created_at) VALUES ('a', 'e', '', 0)",
        params: [],
      },
    ]);
    const id = await catalog.highestAccountId();
    if (micro > 0n) await grant(id, micro);
    return id;
  };
  const grant = (accountId: number, amountMicro: bigint) =>
    metadata.commit(
      transferStatements({
        id: `grant-${accountId}-${granted++}`,
        debit: 'system:grants',
        credit: `account:${accountId}`,
        amountMicro,
        code: 'grant',
        reference: 'test',
        at: clock.now(),
      }),
    );
  let granted = 0;
  if (options.clock === undefined) await addAccount(creditsMicro);
  const close = async () => {
    await metadata.close();
    rmSync(directory, { recursive: true });
  };
  const row = async (accountId = 1) => {
    const found = await accounts.find(accountId);
    if (found === undefined) throw new Error('no such account');
    return found;
  };
  return {
    directory,
    ...shared,
    metadata,
    usageStore,
    usage,
    holds,
    spendable,
    catalog,
    rating,
    ledger,
    addAccount,
    grant,
    row,
    close,
  };
}
