/** Credit states on a real database, with machines that billing stops and starts. For tests. */
import assert from 'node:assert/strict';
import { BillingAccountStore } from '../billing/credit/billing-account-store.ts';
import { type AccountStops, CreditStates, type CreditStatesDeps } from '../billing/credit/credit-state.ts';
import { transferStatements } from '../billing/ledger/ledger.ts';
import type { StopCause } from '../resources/account-stops.ts';
import { eventStatements } from '../webhooks/events-store.ts';
import { type BillingFixture, type BillingFixtureOptions, openBillingFixture } from './billing-fixture.ts';

export const SECOND = 1000;
export const HOUR = 3_600_000;
export const GRACE = HOUR;
/** An hour of p3.2xlarge. */
export const PRICE = 3_060_000n;

export const vm = (id: string, account = 1) => ({
  vm_id: id,
  account_id: account,
  name: id,
  instance_type: 'p3.2xlarge',
  disk_gb: 1,
});

/** Machines as used by billing: running ones, and stopped ones to start again. */
class Machines implements AccountStops {
  readonly #fixture: BillingFixture;
  readonly all = new Set<string>();
  readonly running = new Set<string>();
  readonly stopped = new Set<string>();
  /** The reasons of the stop requests. */
  readonly stops: StopCause[] = [];
  resumes = 0;

  constructor(fixture: BillingFixture) {
    this.#fixture = fixture;
  }

  async create(id: string): Promise<void> {
    this.all.add(id);
    await this.#fixture.metadata.commit(this.#fixture.usage.vmCreated(vm(id)));
  }

  async start(id: string): Promise<void> {
    const { metadata, holds, usage, clock } = this.#fixture;
    await metadata.commit([...(await holds.place(vm(id))), ...usage.vmStarted(vm(id), clock.now())]);
    this.running.add(id);
    this.stopped.delete(id);
  }

  /** Stops a machine like its owner. */
  async halt(id: string): Promise<void> {
    const { metadata, holds, usage, clock } = this.#fixture;
    await metadata.commit([...usage.vmStopped(vm(id), clock.now()), ...(await holds.release(vm(id)))]);
    this.running.delete(id);
  }

  async stop(_accountId: number, cause: StopCause): Promise<void> {
    this.stops.push(cause);
    for (const id of [...this.running]) {
      await this.halt(id);
      if (cause !== 'account_closed') this.stopped.add(id);
    }
    if (cause === 'account_closed') await this.#deleteAll();
  }

  async #deleteAll(): Promise<void> {
    for (const id of this.all) await this.#fixture.metadata.commit(this.#fixture.usage.vmDeleted(vm(id)));
    this.all.clear();
  }

  async resume(): Promise<{ waiting: number }> {
    this.resumes++;
    for (const id of [...this.stopped]) await this.start(id).catch(() => {});
    return { waiting: this.stopped.size };
  }
}

export async function openCreditStates(creditsMicro: bigint, options: BillingFixtureOptions = {}) {
  const fixture = await openBillingFixture({ creditsMicro, ...options });
  const machines = new Machines(fixture);
  const announced: string[] = [];
  const problems: unknown[] = [];
  const deps: CreditStatesDeps = {
    ...fixture,
    usage: fixture.usageStore,
    store: new BillingAccountStore(fixture.metadata),
    stops: [machines],
    graceMs: GRACE,
    announce: (event) => {
      const { state, percent } = event.data;
      announced.push([event.type, state ?? percent].filter(Boolean).join(' '));
      return eventStatements(event);
    },
    onError: (_id, _what, error) => problems.push(error),
  };
  let creditStates = new CreditStates(deps);
  creditStates.serve();
  await creditStates.whenIdle();
  const tick = async () => {
    await creditStates.tick();
    await creditStates.whenIdle();
  };
  const close = async () => {
    assert.deepEqual(problems, []);
    assert.equal((await fixture.ledger.verify()).problem, null);
    await fixture.close();
  };
  /** Discards everything in memory, as after a kill. */
  const restart = (change: Partial<CreditStatesDeps> = {}) => {
    creditStates = new CreditStates({ ...deps, ...change });
  };
  const state = async () => (await fixture.row()).state;
  const nudge = async () => {
    creditStates.accountChanged(1);
    await creditStates.whenIdle();
  };
  const serveAnew = async () => {
    restart();
    creditStates.serve();
    await creditStates.whenIdle();
  };
  const spendAll = async () => {
    const { credits_micro } = await fixture.row();
    await fixture.metadata.commit(
      transferStatements({
        id: 'spent',
        debit: 'account:1',
        credit: 'system:grants',
        code: 'test',
        reference: 'test',
        amountMicro: BigInt(credits_micro),
        at: fixture.clock.now(),
      }),
    );
  };
  const added = async (micro: bigint) => {
    await fixture.grant(1, micro);
    creditStates.creditsAdded(1);
    await creditStates.whenIdle();
  };
  const more = { nudge, serveAnew, spendAll, store: deps.store };
  return { ...fixture, ...more, deps, machines, announced, tick, close, restart, state, added };
}
