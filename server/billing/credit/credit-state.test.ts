import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CommitRejected } from '../../metadata/metadata.ts';
import { GRACE, HOUR, openCreditStates, PRICE, SECOND, vm } from '../../testing/credit-state-fixture.ts';
import { type AccountStops, CreditStates } from './credit-state.ts';

test('credits run out: warned, in grace, stopped, and started again by a top-up', async (t) => {
  const fixture = await openCreditStates(30n * PRICE);
  t.after(fixture.close);
  const { machines, clock, tick, state, announced } = fixture;
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
  assert.equal(machines.stops.length, 1);
  assert.equal(Number((await fixture.row()).held_micro), 0);
  await fixture.added(40n * 24n * PRICE);
  assert.deepEqual([await state(), [...machines.running]], ['ok', ['vm-1']]);
  assert.deepEqual(announced, [
    ...['credits.low low', 'credits.low critical', 'credits.exhausted grace', 'credits.exhausted suspended'],
    'credits.restored ok',
  ]);
});

test('a top-up in the grace pays for the next one, too', async (t) => {
  const fixture = await openCreditStates(2n * PRICE);
  t.after(fixture.close);
  await fixture.machines.create('vm-1');
  await fixture.machines.start('vm-1');
  fixture.clock.advance(HOUR + HOUR / 2);
  await fixture.tick();
  assert.equal(await fixture.state(), 'grace');
  assert.equal(BigInt((await fixture.row()).held_micro), PRICE / 2n);
  await fixture.added(10n * PRICE);
  assert.equal(await fixture.state(), 'critical');
  assert.equal(BigInt((await fixture.row()).held_micro), PRICE);
  assert.equal(BigInt((await fixture.row()).credits_micro), 10n * PRICE - PRICE / 2n);
});

test('a jump of the wall clock ends no grace', async (t) => {
  const fixture = await openCreditStates(PRICE);
  t.after(fixture.close);
  await fixture.machines.create('vm-1');
  await fixture.machines.start('vm-1');
  await fixture.tick();
  assert.equal(await fixture.state(), 'grace');
  fixture.clock.jump(30 * 24 * HOUR);
  await fixture.tick();
  assert.deepEqual([await fixture.state(), fixture.machines.running.size], ['grace', 1]);
});

test('what is stopped in a grace gives the rest no new one', async (t) => {
  const fixture = await openCreditStates(3n * PRICE);
  t.after(fixture.close);
  for (const id of ['vm-1', 'vm-2', 'vm-3']) {
    await fixture.machines.create(id);
    await fixture.machines.start(id);
  }
  await fixture.tick();
  const began = (await fixture.row()).state_at;
  fixture.clock.advance(GRACE / 2);
  await fixture.rating.rateUsage(1);
  await fixture.machines.halt('vm-3');
  await fixture.tick();
  assert.deepEqual([await fixture.state(), (await fixture.row()).state_at], ['grace', began]);
  fixture.clock.advance(2 * HOUR);
  await fixture.tick();
  assert.equal(await fixture.state(), 'suspended');
});

test('when its owner stops everything, an account is in order, but gets nothing new', async (t) => {
  const fixture = await openCreditStates(PRICE);
  t.after(fixture.close);
  await fixture.machines.create('vm-1');
  await fixture.machines.start('vm-1');
  await fixture.tick();
  assert.equal(await fixture.state(), 'grace');
  await fixture.machines.halt('vm-1');
  await fixture.tick();
  assert.deepEqual([await fixture.state(), fixture.machines.stops], ['ok', []]);
});

test('a kill after any commit changes nothing: the next tick goes on', async (t) => {
  const fixture = await openCreditStates(PRICE);
  t.after(fixture.close);
  const { machines, clock, restart, tick, state } = fixture;
  const never: AccountStops = {
    stop: () => new Promise(() => {}),
    resume: () => new Promise(() => {}),
  };
  const dies = async () => {
    const creditStates = new CreditStates({ ...fixture.deps, stops: [never] });
    await creditStates.tick();
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
  // Killed between the commit of the grant and the notification: the tick finds it.
  await fixture.grant(1, 2n * PRICE);
  await dies();
  assert.deepEqual([await state(), machines.running.size], ['ok', 0]);
  await tick();
  assert.deepEqual([...machines.running], ['vm-1']);
});

test('a top-up that is too small for a machine leaves it waiting for the next', async (t) => {
  const fixture = await openCreditStates(PRICE);
  t.after(fixture.close);
  const { machines, clock, tick } = fixture;
  await machines.create('vm-1');
  await machines.start('vm-1');
  await tick();
  clock.advance(GRACE);
  await tick();
  assert.equal(await fixture.state(), 'suspended');
  await fixture.added(1n);
  assert.deepEqual([await fixture.state(), machines.running.size], ['ok', 0]);
  await fixture.added(PRICE);
  assert.deepEqual([...machines.running], ['vm-1']);
});

test('what comes back from a hold is no top-up', async (t) => {
  const fixture = await openCreditStates(PRICE);
  t.after(fixture.close);
  const { machines, clock, tick } = fixture;
  fixture.restart({ graceMs: 60 * SECOND });
  await machines.create('vm-1');
  await machines.start('vm-1');
  await tick();
  clock.advance(60 * SECOND);
  await tick();
  assert.ok(Number((await fixture.row()).credits_micro) > 0);
  await tick();
  assert.deepEqual([await fixture.state(), machines.running.size], ['suspended', 0]);
});

test('64 spenders at once: exactly as many as there are credits for', async (t) => {
  for (const affordable of [0, 1, 7, 63]) {
    const fixture = await openCreditStates(BigInt(affordable) * PRICE + PRICE - 1n);
    t.after(fixture.close);
    const ids = Array.from({ length: 64 }, (_, i) => `vm-${i}`);
    await Promise.all(ids.map((id) => fixture.machines.create(id)));
    const start = async (id: string): Promise<boolean> => {
      try {
        await fixture.machines.start(id);
        return true;
      } catch (error) {
        // Another caller was faster: this caller reads again.
        if ((error as CommitRejected).name === 'CommitRejected') return start(id);
        assert.equal((error as { code?: string }).code, 'insufficient_credits');
        return false;
      }
    };
    const started = await Promise.all(ids.map(start));
    assert.equal(started.filter(Boolean).length, affordable);
    const { credits_micro, held_micro } = await fixture.row();
    assert.deepEqual([credits_micro, held_micro], [Number(PRICE) - 1, affordable * Number(PRICE)]);
  }
});

test('use that is given back is no top-up', async (t) => {
  const fixture = await openCreditStates(3n * PRICE);
  t.after(fixture.close);
  const { machines, clock, tick, state, usage, metadata, rating } = fixture;
  for (const id of ['vm-1', 'vm-2']) await machines.create(id);
  await machines.start('vm-1');
  await machines.start('vm-2');
  clock.advance(HOUR / 2 + SECOND);
  await tick();
  assert.equal(await state(), 'grace');
  clock.advance(GRACE);
  await tick();
  assert.equal(await state(), 'suspended');
  // One of them turns out to have ended long before.
  await metadata.commit([...usage.vmStarted(vm('vm-1'), clock.now())]);
  clock.advance(SECOND);
  await metadata.commit([...usage.vmStopped(vm('vm-1'), clock.now() - HOUR)]);
  await rating.rateUsage(1);
  assert.ok(BigInt((await fixture.row()).credits_micro) > 0n);
  await tick();
  assert.equal(await state(), 'suspended');
});
