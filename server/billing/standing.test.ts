import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CommitRejected } from '../metadata/metadata.ts';
import { type BillingHouse, openBillingHouse } from '../testing/billing-house.ts';
import { eventStatements } from '../webhooks/events.ts';
import { type CreditPower, Standing, type StandingDeps } from './standing.ts';
import { StandingStore } from './standing-store.ts';

const SECOND = 1000;
const HOUR = 3_600_000;
const GRACE = HOUR;
/** An hour of p3.2xlarge. */
const PRICE = 3_060_000n;

const vm = (id: string, account = 1) => ({
  ...{ vm_id: id, account_id: account, name: id, instance_type: 'p3.2xlarge', disk_gb: 0 },
});

/** Machines as far as billing sees them: what runs, and what was stopped for want of credits. */
class Machines implements CreditPower {
  readonly #house: BillingHouse;
  readonly running = new Set<string>();
  readonly stopped = new Set<string>();
  stops = 0;

  constructor(house: BillingHouse) {
    this.#house = house;
  }

  async create(id: string): Promise<void> {
    await this.#house.metadata.commit(this.#house.usage.vmCreated(vm(id)));
  }

  async start(id: string): Promise<void> {
    const { metadata, holds, usage, clock } = this.#house;
    await metadata.commit([...(await holds.place(vm(id))), ...usage.vmStarted(vm(id), clock.now())]);
    this.running.add(id);
    this.stopped.delete(id);
  }

  async stop(id: string): Promise<void> {
    const { metadata, holds, usage, clock } = this.#house;
    await metadata.commit([...usage.vmStopped(vm(id), clock.now()), ...(await holds.release(vm(id)))]);
    this.running.delete(id);
  }

  async stopForCredits(): Promise<void> {
    this.stops++;
    for (const id of [...this.running]) {
      await this.stop(id);
      this.stopped.add(id);
    }
  }

  async stopOfClosed(): Promise<void> {
    for (const id of [...this.running]) await this.stop(id);
  }

  async resumeAfterCredits(): Promise<{ waiting: number }> {
    for (const id of [...this.stopped]) await this.start(id).catch(() => {});
    return { waiting: this.stopped.size };
  }
}

async function openStanding(creditsMicro: bigint) {
  const house = await openBillingHouse({ creditsMicro });
  const machines = new Machines(house);
  const told: string[] = [];
  const problems: unknown[] = [];
  const deps: StandingDeps = {
    ...house,
    usage: house.usageStore,
    store: new StandingStore(house.metadata),
    compute: machines,
    graceMs: GRACE,
    announce: (event) => {
      told.push(`${event.type} ${event.data.state}`);
      return eventStatements(event);
    },
    report: (_id, _what, error) => problems.push(error),
  };
  let standing = new Standing(deps);
  standing.serve();
  const tick = async () => {
    await standing.tick();
    await standing.settled();
  };
  const close = async () => {
    assert.deepEqual(problems, []);
    assert.equal((await house.ledger.verify()).problem, null);
    await house.close();
  };
  /** Nothing in memory is left, as after a kill. */
  const restart = (change: Partial<StandingDeps> = {}) => {
    standing = new Standing({ ...deps, ...change });
    standing.serve();
  };
  const state = async () => (await house.row()).state;
  const added = async (micro: bigint) => {
    await house.grant(1, micro);
    standing.creditsAdded(1);
    await standing.settled();
  };
  return { ...house, deps, machines, told, tick, close, restart, state, added };
}

test('credits run out: warned, in grace, stopped, and started again by a top-up', async (t) => {
  const house = await openStanding(30n * PRICE);
  t.after(house.close);
  const { machines, clock, tick, state, told } = house;
  for (const id of ['vm-1', 'vm-2']) await machines.create(id);
  await tick();
  assert.equal(await state(), 'ok');
  await machines.start('vm-1');
  await tick();
  assert.equal(await state(), 'low');
  clock.advance(5 * HOUR + SECOND);
  await tick();
  assert.equal(await state(), 'critical');
  clock.advance(24 * HOUR - 2 * SECOND);
  await tick();
  assert.equal(await state(), 'critical');
  clock.advance(SECOND);
  await tick();
  assert.equal(await state(), 'grace');
  clock.advance(GRACE - SECOND);
  await tick();
  assert.deepEqual([await state(), [...machines.running]], ['grace', ['vm-1']]);
  clock.advance(SECOND);
  await tick();
  assert.deepEqual([await state(), machines.running.size], ['suspended', 0]);
  await tick();
  assert.equal(machines.stops, 1);
  assert.equal(Number((await house.row()).held_micro), 0);
  await house.added(40n * 24n * PRICE);
  assert.deepEqual([await state(), [...machines.running]], ['ok', ['vm-1']]);
  assert.deepEqual(told, [
    ...['credits.low low', 'credits.low critical', 'credits.exhausted grace', 'credits.exhausted suspended'],
    'credits.restored ok',
  ]);
});

test('a top-up in the grace pays for the next one, too', async (t) => {
  const house = await openStanding(2n * PRICE);
  t.after(house.close);
  await house.machines.create('vm-1');
  await house.machines.start('vm-1');
  house.clock.advance(HOUR + HOUR / 2);
  await house.tick();
  assert.equal(await house.state(), 'grace');
  assert.equal(BigInt((await house.row()).held_micro), PRICE / 2n);
  await house.added(10n * PRICE);
  assert.equal(await house.state(), 'critical');
  assert.equal(BigInt((await house.row()).held_micro), PRICE);
  assert.equal(BigInt((await house.row()).credits_micro), 10n * PRICE - PRICE / 2n);
});

test('a jump of the wall clock ends no grace', async (t) => {
  const house = await openStanding(PRICE);
  t.after(house.close);
  await house.machines.create('vm-1');
  await house.machines.start('vm-1');
  await house.tick();
  assert.equal(await house.state(), 'grace');
  house.clock.jump(30 * 24 * HOUR);
  await house.tick();
  assert.deepEqual([await house.state(), house.machines.running.size], ['grace', 1]);
});

test('what is stopped in a grace gives the rest no new one', async (t) => {
  const house = await openStanding(3n * PRICE);
  t.after(house.close);
  for (const id of ['vm-1', 'vm-2', 'vm-3']) {
    await house.machines.create(id);
    await house.machines.start(id);
  }
  await house.tick();
  const began = (await house.row()).state_at;
  house.clock.advance(GRACE / 2);
  await house.settlement.settle(1);
  await house.machines.stop('vm-3');
  await house.tick();
  assert.deepEqual([await house.state(), (await house.row()).state_at], ['grace', began]);
  house.clock.advance(2 * HOUR);
  await house.tick();
  assert.equal(await house.state(), 'suspended');
});

test('when its owner stops everything, an account is in order, but gets nothing new', async (t) => {
  const house = await openStanding(PRICE);
  t.after(house.close);
  await house.machines.create('vm-1');
  await house.machines.start('vm-1');
  await house.tick();
  assert.equal(await house.state(), 'grace');
  await house.machines.stop('vm-1');
  await house.tick();
  assert.deepEqual([await house.state(), house.machines.stops], ['ok', 0]);
});

test('a kill after any commit changes nothing: the next tick goes on', async (t) => {
  const house = await openStanding(PRICE);
  t.after(house.close);
  const { machines, clock, restart, tick, state } = house;
  const never: CreditPower = {
    stopForCredits: () => new Promise(() => {}),
    stopOfClosed: () => new Promise(() => {}),
    resumeAfterCredits: () => new Promise(() => {}),
  };
  const dies = async () => {
    const standing = new Standing({ ...house.deps, compute: never });
    await standing.tick();
    restart();
  };
  await machines.create('vm-1');
  await machines.start('vm-1');
  await dies();
  assert.equal(await state(), 'grace');
  clock.advance(GRACE);
  await dies();
  assert.deepEqual([await state(), machines.running.size], ['suspended', 1]);
  await tick();
  assert.equal(machines.running.size, 0);
  // Killed between the grant's commit and the nudge: the tick sees it.
  await house.grant(1, 2n * PRICE);
  await dies();
  assert.deepEqual([await state(), machines.running.size], ['ok', 0]);
  await tick();
  assert.deepEqual([...machines.running], ['vm-1']);
});

test('a top-up that is too small for a machine leaves it waiting for the next', async (t) => {
  const house = await openStanding(PRICE);
  t.after(house.close);
  const { machines, clock, tick } = house;
  await machines.create('vm-1');
  await machines.start('vm-1');
  await tick();
  clock.advance(GRACE);
  await tick();
  assert.equal(await house.state(), 'suspended');
  await house.added(1n);
  assert.deepEqual([await house.state(), machines.running.size], ['ok', 0]);
  await house.added(PRICE);
  assert.deepEqual([...machines.running], ['vm-1']);
});

test('what comes back from a hold is no top-up', async (t) => {
  const house = await openStanding(PRICE);
  t.after(house.close);
  const { machines, clock, tick } = house;
  house.restart({ graceMs: 60 * SECOND });
  await machines.create('vm-1');
  await machines.start('vm-1');
  await tick();
  clock.advance(60 * SECOND);
  await tick();
  assert.ok(Number((await house.row()).credits_micro) > 0);
  await tick();
  assert.deepEqual([await house.state(), machines.running.size], ['suspended', 0]);
});

test('64 spenders at once: exactly as many as there are credits for', async (t) => {
  for (const affordable of [0, 1, 7, 63]) {
    const house = await openStanding(BigInt(affordable) * PRICE + PRICE - 1n);
    t.after(house.close);
    const ids = Array.from({ length: 64 }, (_, i) => `vm-${i}`);
    await Promise.all(ids.map((id) => house.machines.create(id)));
    const start = async (id: string): Promise<boolean> => {
      try {
        await house.machines.start(id);
        return true;
      } catch (error) {
        // Somebody else was faster: the caller looks again.
        if ((error as CommitRejected).name === 'CommitRejected') return start(id);
        assert.equal((error as { code?: string }).code, 'insufficient_credits');
        return false;
      }
    };
    const started = await Promise.all(ids.map(start));
    assert.equal(started.filter(Boolean).length, affordable);
    const { credits_micro, held_micro } = await house.row();
    assert.deepEqual([credits_micro, held_micro], [Number(PRICE) - 1, affordable * Number(PRICE)]);
  }
});

test('the machines of a closed account are stopped, and no credits start them again', async (t) => {
  const house = await openStanding(1000n * PRICE);
  t.after(house.close);
  const { machines, tick, added, metadata } = house;
  await machines.create('vm-1');
  await machines.start('vm-1');
  await metadata.commit([{ sql: 'UPDATE accounts SET closed_at = 1 WHERE id = 1', params: [] }]);
  await tick();
  assert.deepEqual([...machines.running], []);
  assert.equal((await house.row()).held_micro, 0);
  await added(PRICE);
  await tick();
  assert.deepEqual([...machines.running], []);
});

test('use that is given back is no top-up', async (t) => {
  const house = await openStanding(3n * PRICE);
  t.after(house.close);
  const { machines, clock, tick, state, usage, metadata, settlement } = house;
  for (const id of ['vm-1', 'vm-2']) await machines.create(id);
  await machines.start('vm-1');
  await machines.start('vm-2');
  clock.advance(HOUR / 2 + SECOND);
  await tick();
  assert.equal(await state(), 'grace');
  clock.advance(GRACE);
  await tick();
  assert.equal(await state(), 'suspended');
  // It turns out that one of them had ended long before.
  await metadata.commit([...usage.vmStarted(vm('vm-1'), clock.now())]);
  clock.advance(SECOND);
  await metadata.commit([...usage.vmStopped(vm('vm-1'), clock.now() - HOUR)]);
  await settlement.settle(1);
  assert.ok(BigInt((await house.row()).credits_micro) > 0n);
  await tick();
  assert.equal(await state(), 'suspended');
});
