/** Accounts that an administrator suspends, or that are closed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GRACE, HOUR, openCreditStates, PRICE, SECOND } from '../../testing/credit-state-fixture.ts';

/** Administrators suspend and resume account 1 with the commits and notifications that accounts use. */
function administration({ metadata, store, nudge }: SuspendedFixture) {
  const setActive = (active: number) => ({
    sql: 'UPDATE accounts SET is_active = ? WHERE id = 1',
    params: [active],
  });
  return {
    suspend: async () => {
      await metadata.commit([setActive(0)]);
      await nudge();
    },
    resume: async () => {
      await metadata.commit([setActive(1), store.resumeDue(1)]);
      await nudge();
    },
  };
}
type SuspendedFixture = Pick<Awaited<ReturnType<typeof openCreditStates>>, 'metadata' | 'store' | 'nudge'>;

test('a suspension by an administrator stops what runs at once, and its end starts it again', async (t) => {
  const fixture = await openCreditStates(1000n * PRICE);
  t.after(fixture.close);
  const { machines, added, tick, state } = fixture;
  const { suspend, resume } = administration(fixture);
  for (const id of ['vm-1', 'vm-2']) {
    await machines.create(id);
    await machines.start(id);
  }
  await machines.halt('vm-2');
  await suspend();
  assert.deepEqual([machines.running.size, machines.stops], [0, ['account_suspended']]);
  assert.equal(await state(), 'ok', 'which is another thing than its credits');
  assert.equal(Number((await fixture.row()).held_micro), 0);
  await added(PRICE);
  await tick();
  assert.deepEqual([machines.running.size, machines.resumes], [0, 0]);
  await resume();
  assert.deepEqual([...machines.running], ['vm-1']);
  await tick();
  assert.equal(machines.resumes, 1, 'once');
});

test('a kill after a suspension or its end changes nothing: the next start goes on', async (t) => {
  const fixture = await openCreditStates(1000n * PRICE);
  t.after(fixture.close);
  const { machines, serveAnew } = fixture;
  const { suspend, resume } = administration({ ...fixture, nudge: async () => {} });
  await machines.create('vm-1');
  await machines.start('vm-1');
  await suspend();
  assert.equal(machines.running.size, 1);
  await serveAnew();
  assert.deepEqual([machines.running.size, machines.stops], [0, ['account_suspended']]);
  await resume();
  assert.equal(machines.running.size, 0);
  await serveAnew();
  assert.deepEqual([...machines.running], ['vm-1']);
});

test('who is resumed without credits waits for them', async (t) => {
  const fixture = await openCreditStates(2n * PRICE);
  t.after(fixture.close);
  const { machines, clock, tick, state, added } = fixture;
  const { suspend, resume } = administration(fixture);
  await machines.create('vm-1');
  await machines.start('vm-1');
  clock.advance(HOUR + SECOND);
  await tick();
  assert.equal(await state(), 'grace');
  // None of its resources run any more, so the grace period is over and nothing is held.
  await suspend();
  await tick();
  await fixture.spendAll();
  assert.equal(await state(), 'ok');
  await resume();
  await tick();
  assert.deepEqual([machines.running.size, machines.resumes], [0, 0]);
  await added(10n * PRICE);
  assert.deepEqual([...machines.running], ['vm-1']);
});

test('who is suspended for want of credits and by an administrator needs both to end', async (t) => {
  for (const order of ['credits first', 'resumed first'] as const) {
    const fixture = await openCreditStates(PRICE);
    t.after(fixture.close);
    const { machines, clock, tick, state, added } = fixture;
    const { suspend, resume } = administration(fixture);
    await machines.create('vm-1');
    await machines.start('vm-1');
    await tick();
    clock.advance(GRACE);
    await tick();
    assert.equal(await state(), 'suspended');
    await suspend();
    if (order === 'credits first') await added(10n * PRICE);
    else await resume();
    await tick();
    assert.equal(await state(), order === 'credits first' ? 'ok' : 'suspended');
    assert.deepEqual([machines.running.size, machines.resumes], [0, 0], order);
    if (order === 'credits first') await resume();
    else await added(10n * PRICE);
    assert.deepEqual([...machines.running], ['vm-1'], order);
  }
});

test('a closed account is checked as long as it has a machine, and no longer', async (t) => {
  const fixture = await openCreditStates(1000n * PRICE);
  t.after(fixture.close);
  const { machines, tick, metadata } = fixture;
  await machines.create('vm-1');
  await tick();
  assert.deepEqual(machines.stops, []);
  await metadata.commit([{ sql: 'UPDATE accounts SET closed_at = 1, is_active = 0', params: [] }]);
  await tick();
  await tick();
  assert.deepEqual(machines.stops, ['account_closed']);
});

test('the machines of a closed account are stopped, and no credits start them again', async (t) => {
  const fixture = await openCreditStates(1000n * PRICE);
  t.after(fixture.close);
  const { machines, tick, added, metadata } = fixture;
  await machines.create('vm-1');
  await machines.start('vm-1');
  await metadata.commit([{ sql: 'UPDATE accounts SET closed_at = 1, is_active = 0', params: [] }]);
  await tick();
  assert.deepEqual([[...machines.running], machines.stops[0]], [[], 'account_closed']);
  assert.equal((await fixture.row()).held_micro, 0);
  await added(PRICE);
  await tick();
  assert.deepEqual([...machines.running], []);
});
