import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { Call } from '../../calls/principal.ts';
import { AppError, type ErrorCode, isAppError } from '../../platform/errors.ts';
import { type Compute, type ComputeFixture, openComputeFixture } from '../../testing/compute-fixture.ts';
import { EVENTS_KEPT } from './vm-store.ts';

let fixture: ComputeFixture;
let cloud: Compute;
let ann: Call;
let vmId: string;
before(async () => {
  fixture = await openComputeFixture();
  ann = await fixture.newCall('ann');
});
after(() => fixture.close());
beforeEach(async () => {
  cloud = await fixture.open();
  cloud.supervisor.start();
  await cloud.supervisor.recovered();
  vmId = (await cloud.machines.create(ann, { name: 'web', instance_type: 't2.micro' })).vm_id;
});

const code = (wanted: ErrorCode) => (error: unknown) => isAppError(error, wanted);
const read = () => cloud.machines.describe(ann.principal, vmId);
const events = async () => (await fixture.usage(vmId)).map(({ event }) => event);
const starts = () => fixture.engine.starts.filter((id) => id === vmId).length;

async function reached(state: string): Promise<void> {
  while ((await read()).state !== state) await new Promise((resolve) => setImmediate(resolve));
}

/** Lets a scripted call wait for a release; `entered` resolves once the call has begun. */
function gate() {
  const way = Promise.withResolvers<void>();
  const entered = Promise.withResolvers<void>();
  const wait = () => {
    entered.resolve();
    return way.promise;
  };
  return { open: () => way.resolve(), entered: entered.promise, wait };
}

test('a machine that ran before and has lost its disk is an error, until the disk is back', async () => {
  fixture.engine.guests.delete(vmId);
  await cloud.power.start(ann, vmId); // created by the first start: the engine was not there before
  await cloud.power.stop(ann, vmId);
  const guest = fixture.engine.guests.get(vmId);
  assert.ok(guest);
  fixture.engine.guests.delete(vmId);
  await assert.rejects(cloud.power.start(ann, vmId), code('disk_missing'));
  const { state, state_reason } = await read();
  assert.deepEqual([state, state_reason?.code], ['error', 'disk_missing']);
  assert.ok(!fixture.engine.guests.has(vmId));
  fixture.engine.guests.set(vmId, guest);
  assert.equal((await cloud.power.start(ann, vmId)).state, 'running');
});

test('a start and a stop store their entry with the wish, before the engine is asked', async () => {
  const stored: string[] = [];
  const call = (name: string): Call => {
    return { ...ann, entry: { statements: () => [], stored: () => void stored.push(name) } };
  };
  cloud.scripted.script('start', async () => assert.deepEqual(stored, ['start']));
  cloud.scripted.script('stop', async () => assert.deepEqual(stored, ['start', 'stop']));
  await cloud.power.start(call('start'), vmId);
  await cloud.power.stop(call('stop'), vmId);
});

test('start, a sign of life, stop: states, times, ingress and usage go together', async () => {
  const running = await cloud.power.start(ann, vmId);
  const t0 = fixture.clock.now();
  assert.equal(running.state, 'running');
  assert.deepEqual([running.accel, running.accel_reason], ['scripted', 'a test']);
  const entry = cloud.ingress.entries.get(vmId);
  assert.equal(entry?.isRunning, true);
  fixture.clock.advance(5000);
  entry?.exposure.onSignOfLife();
  while ((await read()).ready_at === null) await new Promise((resolve) => setTimeout(resolve, 5));
  fixture.clock.advance(5000);
  entry?.exposure.onSignOfLife();
  const alive = await read();
  assert.equal(alive.uptime_seconds, 10);
  assert.equal(Date.parse(`${alive.ready_at}Z`), t0 + 5000);
  const stopped = await cloud.power.stop(ann, vmId);
  assert.equal(stopped.state, 'stopped');
  assert.equal(stopped.state_reason?.code, 'shut_down');
  assert.deepEqual([stopped.started_at, stopped.ready_at, stopped.uptime_seconds], [null, null, 0]);
  assert.equal(cloud.ingress.entries.has(vmId), false);
  assert.deepEqual((await fixture.usage(vmId)).slice(1), [
    { event: 'started', at: t0 },
    { event: 'stopped', at: t0 + 10_000 },
  ]);
  assert.equal((await cloud.power.start(ann, vmId)).ready_at, null);
});

test('a goal that is reached is no error, and does nothing', async () => {
  await cloud.power.start(ann, vmId);
  assert.equal((await cloud.power.start(ann, vmId)).state, 'running');
  assert.equal(starts(), 1);
  await cloud.power.stop(ann, vmId);
  assert.equal((await cloud.power.stop(ann, vmId)).state, 'stopped');
  assert.deepEqual(await events(), ['created', 'started', 'stopped']);
});

test('the same action twice at once happens once; another one is refused and named', async () => {
  const { open, wait } = gate();
  cloud.scripted.script('start', wait);
  const both = [cloud.power.start(ann, vmId), cloud.power.start(ann, vmId)];
  await assert.rejects(cloud.power.stop(ann, vmId), (error) => {
    assert.ok(isAppError(error, 'vm_locked'));
    assert.deepEqual(error.extra, { state: 'starting', action: 'stop', allowed: ['start'] });
    return true;
  });
  await assert.rejects(cloud.deleter.remove(ann, vmId), code('vm_locked'));
  await reached('starting');
  open();
  const [one, two] = await Promise.all(both);
  assert.deepEqual(one, two);
  assert.equal(starts(), 1);
  assert.deepEqual(await events(), ['created', 'started']);
});

test('the grace is that of the caller, or of the operator', async () => {
  for (const request of [{}, { graceMs: 3000 }, { graceMs: 0 }]) {
    await cloud.power.start(ann, vmId);
    await cloud.power.stop(ann, vmId, request);
  }
  assert.deepEqual(cloud.scripted.graces, [10_000, 3000, 0]);
});

test('who wants it stopped at once ends the grace of the stop under way', async () => {
  await cloud.power.start(ann, vmId);
  const { open, entered, wait } = gate();
  cloud.scripted.script('stop', wait);
  const gentle = cloud.power.stop(ann, vmId);
  await entered;
  const second = cloud.power.stop(ann, vmId, { graceMs: 5000 });
  await reached('stopping');
  assert.equal(cloud.scripted.signal?.aborted, false, 'another grace than 0 changes nothing');
  const hard = cloud.power.stop(ann, vmId, { graceMs: 0 });
  for (let i = 0; i < 100 && !cloud.scripted.signal?.aborted; i++) await new Promise(setImmediate);
  assert.equal(cloud.scripted.signal?.aborted, true);
  open();
  assert.deepEqual(await hard, await gentle);
  assert.deepEqual(await second, await gentle);
  assert.deepEqual(cloud.scripted.graces, [10_000]);
});

test('an engine that lacks something: the machine is as it was, with the reason', async () => {
  cloud.scripted.script('start', async () => {
    throw new AppError('engine_unavailable', 'No engine here', { hint: 'install it' });
  });
  await assert.rejects(cloud.power.start(ann, vmId), code('engine_unavailable'));
  const { state, state_reason } = await read();
  assert.deepEqual([state, state_reason?.code], ['created', 'engine_unavailable']);
  await cloud.power.stop(ann, vmId);
  await assert.rejects(cloud.power.start(ann, vmId), code('engine_unavailable'));
  assert.equal((await read()).state, 'stopped');
  assert.deepEqual(await events(), ['created']);
});

test('an engine that fails without a word: error, which a stop mends; nothing secret is shown', async () => {
  cloud.scripted.script('start', async () => {
    throw new Error('secret path');
  });
  await assert.rejects(cloud.power.start(ann, vmId), /secret path/);
  const failed = await read();
  assert.deepEqual([failed.state, failed.state_reason?.code], ['error', 'internal_error']);
  assert.doesNotMatch(JSON.stringify(failed), /secret/);
  await assert.rejects(cloud.deleter.remove(ann, vmId), code('vm_not_stopped'));
  assert.equal((await cloud.power.stop(ann, vmId)).state, 'stopped');
  await cloud.deleter.remove(ann, vmId);
});

test('a stop that fails leaves the run counted until it is known to be over', async () => {
  await cloud.power.start(ann, vmId);
  cloud.scripted.script('stop', async () => {
    throw new AppError('internal_error', 'It does not answer');
  });
  await assert.rejects(cloud.power.stop(ann, vmId), code('internal_error'));
  assert.equal((await read()).state, 'error');
  assert.deepEqual(await events(), ['created', 'started']);
  cloud.scripted.script('stop');
  assert.equal((await cloud.power.stop(ann, vmId)).state, 'stopped');
  assert.deepEqual(await events(), ['created', 'started', 'stopped']);
});

test('a guest that ends by itself: stopped or error, at the time it ended', async () => {
  for (const [cause, state] of [
    ['guest_shutdown', 'stopped'],
    ['crashed', 'error'],
    ['guest_panic', 'error'],
  ] as const) {
    await cloud.power.start(ann, vmId);
    const end = cloud.scripted.end(vmId, cause, false);
    fixture.clock.advance(4000);
    cloud.scripted.report(end);
    await cloud.turns.idle();
    const vm = await read();
    assert.deepEqual([vm.state, vm.state_reason?.code], [state, cause]);
    assert.deepEqual((await fixture.usage(vmId)).at(-1), { event: 'stopped', at: end.at });
    assert.equal(cloud.ingress.entries.has(vmId), false);
  }
});

test('the end of an earlier run says nothing of the present one', async () => {
  await cloud.power.start(ann, vmId);
  const end = cloud.scripted.end(vmId, 'crashed');
  await cloud.turns.idle();
  await cloud.power.start(ann, vmId);
  cloud.scripted.report(end);
  await cloud.turns.idle();
  assert.equal((await read()).state, 'running');
});

test('a guest that ends before its start is stored is not left as running', async () => {
  const { open, entered, wait } = gate();
  cloud.scripted.script('start', wait);
  const starting = cloud.power.start(ann, vmId);
  await entered;
  open();
  // The engine has started it; the commit that records this, in another turn, is still to come.
  while (!fixture.engine.running().includes(vmId)) await Promise.resolve();
  cloud.scripted.end(vmId, 'crashed');
  await starting;
  await cloud.turns.idle();
  assert.equal((await read()).state, 'error');
  assert.deepEqual(await events(), ['created', 'started', 'stopped']);
});

test('without credits nothing is started, but stopped and deleted', async () => {
  const poor = await openComputeFixture();
  const { machines, power, deleter } = await poor.open();
  const eve = await poor.newCall('eve');
  const { vm_id } = await machines.create(eve, { name: 'x', instance_type: 't2.micro' });
  await poor.spendAll();
  await assert.rejects(power.start(eve, vm_id), code('insufficient_credits'));
  assert.equal((await machines.describe(eve.principal, vm_id)).state, 'created');
  await power.stop(eve, vm_id);
  await deleter.remove(eve, vm_id);
  await poor.close();
});

test('a machine is deleted only when it is stopped; then it is gone, and its address is free', async () => {
  await assert.rejects(cloud.deleter.remove(ann, vmId), code('vm_not_stopped'));
  await cloud.power.start(ann, vmId);
  await assert.rejects(cloud.deleter.remove(ann, vmId), code('vm_not_stopped'));
  const { ip_address } = await cloud.power.stop(ann, vmId);
  const gone = await Promise.all([cloud.deleter.remove(ann, vmId), cloud.deleter.remove(ann, vmId)]);
  assert.deepEqual(gone[0], { vm_id: vmId, name: 'web', deleted: true, state: 'deleted' });
  assert.deepEqual(gone[1], gone[0]);
  await assert.rejects(read(), code('vm_not_found'));
  await assert.rejects(cloud.power.start(ann, vmId), code('vm_not_found'));
  assert.equal(fixture.engine.guests.has(vmId), false);
  assert.equal(cloud.ingress.entries.has(vmId), false);
  assert.deepEqual(await events(), ['created', 'started', 'stopped', 'deleted']);
  assert.ok(!(await fixture.store.addresses()).includes(ip_address ?? ''));
});

test('a deletion whose disk cannot be removed is finished when it is asked for again', async () => {
  await cloud.power.stop(ann, vmId);
  cloud.scripted.script('discard', async () => {
    throw new AppError('engine_unavailable', 'not now');
  });
  const answers: unknown[] = [];
  const record = (answer: unknown) => {
    answers.push(answer);
    return [];
  };
  await assert.rejects(cloud.deleter.remove({ ...ann, record }, vmId), code('engine_unavailable'));
  // It is stored with the deletion: a repeated call after a crash finds it, and no machine.
  assert.deepEqual(answers, [{ vm_id: vmId, name: 'web', deleted: true, state: 'deleted' }]);
  const { state, ip_address } = await read();
  assert.deepEqual([state, ip_address], ['deleting', null]);
  await assert.rejects(cloud.power.start(ann, vmId), code('vm_invalid_state'));
  cloud.scripted.script('discard');
  await cloud.deleter.remove(ann, vmId);
  assert.deepEqual(await events(), ['created', 'deleted']);
});

test('machines that run share the quota of memory, however many are started at once', async () => {
  const ben = await fixture.newCall('ben');
  const { accountId } = ben.principal;
  await fixture.setQuotas(accountId, { memory_mb: 4096 });
  const newVm = async (instance_type: string) =>
    (await cloud.machines.create(ben, { name: 'm', instance_type })).vm_id;
  const small = await Promise.all(Array.from({ length: 8 }, () => newVm('t2.micro')));
  const large = await newVm('p3.2xlarge');
  const outcomes = await Promise.allSettled(small.map((id) => cloud.power.start(ben, id)));
  const started = small.filter((_, i) => outcomes[i]?.status === 'fulfilled');
  assert.equal(started.length, 4);
  const refusals = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  assert.ok(refusals.every(code('quota_exceeded')));
  const { message, hint, extra } = refusals[0] as AppError;
  assert.match(message, /^Your quota of 4096 MiB of memory of running machines is not enough for 1024 more/);
  assert.match(hint ?? '', /^Stop another machine/);
  assert.deepEqual(extra, { quota: 'memory_mb', limit: 4096, used: 4096, requested: 1024 });
  await assert.rejects(cloud.power.start(ben, large), code('insufficient_capacity'), 'whoever asks');
  assert.equal((await cloud.machines.describe(ben.principal, large)).state, 'created');
  // Stopping one frees memory; the restart of a host checks no quota, and a lowered quota stops nothing.
  await cloud.power.stop(ben, started[0] ?? '');
  await fixture.setQuotas(accountId, { memory_mb: 1024 });
  fixture.engine.losePower(started[1]);
  await cloud.reconciler.reconcile(started[1] ?? '', { isSure: true });
  assert.equal((await cloud.machines.describe(ben.principal, started[1] ?? '')).state, 'running');
  await fixture.setQuotas(accountId, { memory_mb: 4096 });
  const next = small.find((id) => !started.includes(id)) ?? '';
  assert.equal((await cloud.power.start(ben, next)).state, 'running');
  await assert.rejects(cloud.power.start(ben, started[0] ?? ''), code('quota_exceeded'));
});

test('accounts without granted credits leave memory for one that has some, however many they are', async (t) => {
  const own = await openComputeFixture();
  t.after(() => own.close());
  const shared = await own.open({ ungrantedMemoryPercent: 50 });
  const names = ['eve', 'mal', 'oscar', 'ivan', 'judy'];
  const attackers = await Promise.all(names.map((name) => own.newCall(name)));
  const victim = await own.newCall('victim');
  await own.grant(victim.principal.accountId);
  const newVm = async (call: Call) =>
    (await shared.machines.create(call, { name: 'm', instance_type: 't2.medium' })).vm_id;
  // Half of the 36 GiB is enough for four of 4 GiB, and a quarter of that for one.
  const wanted = await Promise.all(attackers.map(async (call) => ({ call, id: await newVm(call) })));
  // A single account cannot get more than that, even with several starts at once.
  const [first] = attackers;
  assert.ok(first);
  const many = [await newVm(first), await newVm(first), await newVm(first)];
  const alone = await Promise.allSettled(many.map((id) => shared.power.start(first, id)));
  assert.equal(alone.filter(({ status }) => status === 'fulfilled').length, 1);
  const greedy = alone.flatMap((one) => (one.status === 'rejected' ? [one.reason as AppError] : []));
  assert.ok(greedy.every(code('insufficient_capacity')));
  assert.match(greedy[0]?.message ?? '', /your machines use 4096 MiB of the 4608 MiB that one account/);
  for (const [at, id] of many.entries())
    if (alone[at]?.status === 'fulfilled') await shared.power.stop(first, id);
  const outcomes = await Promise.allSettled(wanted.map(({ call, id }) => shared.power.start(call, id)));
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 4);
  const refusals = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason as AppError] : []));
  assert.ok(refusals.every(code('insufficient_capacity')));
  const [{ message, hint } = new AppError('internal_error', 'none')] = refusals;
  assert.match(
    message,
    /other accounts use 16384 MiB of the 18432 MiB that accounts without granted credits/,
  );
  assert.match(hint ?? '', /grant you credits.*CLOUDLET_UNGRANTED_MEMORY_PERCENT/);
  for (let n = 0; n < 2; n++) {
    assert.equal((await shared.power.start(victim, await newVm(victim))).state, 'running');
  }
  const running = wanted.filter((_, at) => outcomes[at]?.status === 'fulfilled');
  const [stopped] = running;
  assert.ok(stopped);
  const refused = wanted.find((_, at) => outcomes[at]?.status === 'rejected');
  assert.ok(refused);
  await assert.rejects(shared.power.start(refused.call, refused.id), code('insufficient_capacity'));
  await shared.power.stop(stopped.call, stopped.id);
  assert.equal(
    (await shared.power.start(refused.call, refused.id)).state,
    'running',
    'what ends is free again',
  );
});

test('a machine that is started for ever keeps its first event and the newest', async () => {
  const many =
    'INSERT INTO vm_usage SELECT NULL, vm_id, account_id, ?, instance_type, price_micro, disk_gb, at + ?';
  const from = 'FROM vm_usage WHERE vm_id = ? LIMIT 1';
  await fixture.metadata.commit(
    Array.from({ length: 3 * EVENTS_KEPT }, (_, i) => {
      const event = i % 2 === 0 ? 'started' : 'stopped';
      return { sql: `${many} ${from}`, params: [event, i + 1, vmId] };
    }),
  );
  await cloud.power.start(ann, vmId);
  await cloud.power.stop(ann, vmId);
  const kept = await events();
  assert.equal(kept[0], 'created');
  assert.deepEqual(kept.slice(-3), ['stopped', 'started', 'stopped']);
  assert.equal(kept.length, EVENTS_KEPT + 2, 'the first, and one since');
});

test('a machine does not start without a database whose address is unknown for now', async () => {
  let uri: () => Promise<string | null> = async () => 'postgresql://shop.db.internal/';
  const other = await fixture.open({ databaseUri: () => uri() });
  const input = { name: 'web', instance_type: 't2.micro', databases: ['shop'] };
  const { vm_id } = await other.machines.create(ann, input);
  uri = () => Promise.reject(new Error('the metadata are away'));
  await assert.rejects(other.power.start(ann, vm_id), code('engine_unavailable'));
  const { state, state_reason } = await other.machines.describe(ann.principal, vm_id);
  assert.equal(state, 'created');
  assert.equal(state_reason?.message, 'The address of the database shop cannot be read now');
  assert.equal(fixture.engine.starts.includes(vm_id), false);
  uri = async () => 'postgresql://shop.db.internal/';
  assert.equal((await other.power.start(ann, vm_id)).state, 'running');
  await other.power.stop(ann, vm_id);
  // The database is deleted.
  uri = async () => null;
  assert.equal((await other.power.start(ann, vm_id)).state, 'running');
});
