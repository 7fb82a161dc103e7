/** The cost of real machines: by the second of running time, whatever happens to Cloudlet meanwhile. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { assertBill, assertBooks, billOf, msOf, runsOf, T2_MICRO_PRICE } from './billing-kit.ts';
import { cannotRunGuests, guestPids, idleImage, newVm, removeAll } from './vms-kit.ts';

const isFull = process.env.FAULTS === 'full';
const RUN_MS = isFull ? 90_000 : 4000;
/** Longer than the inaccuracy of a clock or of the detection of an end. */
const DEAD_MS = isFull ? 60_000 : 2500;
const TIMES = 20;
/** Clocks are read a moment before and after the event; file times are even coarser. */
const TICKS_MS = 10;
const SPENDERS = isFull ? 64 : 24;
const AFFORDED = 3;

const skip = cannotRunGuests();
const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-billing-'));
let cloud: CloudProcess;
let user: CheckedClient;
let key: string;
let idle: { readonly image: string };
before(async () => {
  cloud = await CloudProcess.start({ dataDir });
  const anyone = await CheckedClient.open(cloud.api);
  key = (await anyone.register()).api_key;
  user = anyone.as(key);
  if (!skip) idle = await idleImage(anyone.as(ADMIN_KEY));
});
after(async () => {
  await removeAll(user);
  await cloud.stop();
  assertBooks(dataDir);
  rmSync(dataDir, { recursive: true });
});

const post = (path: string) => user.expect(200, path, { method: 'POST' });
const idOf = (vm: string) => vm.slice(vm.lastIndexOf('/') + 1);

/** Cloudlet is killed, stays down during `work`, and restarts on other ports. */
async function whileDead(work: () => Promise<void>): Promise<void> {
  await cloud.crash();
  await work();
  await cloud.start();
  user = await CheckedClient.open(cloud.api, key);
}

/** Starts it, waits, stops it; returns the shortest and the longest possible running time, ms. */
async function runFor(
  vm: string,
  meanwhile: () => Promise<unknown>,
): Promise<{ least: number; most: number }> {
  const asked = performance.now();
  await post(`${vm}/start`);
  const runs = performance.now();
  await meanwhile();
  const toStop = performance.now();
  await post(`${vm}/stop?force=true`);
  return { least: toStop - runs, most: performance.now() - asked };
}

test('reading adds nothing to the ledger, and all that is read agrees', { skip }, async () => {
  const vm = await newVm(user, idle);
  await post(`${vm}/start`);
  const codes = async () =>
    (await user.expect(200, '/api/billing/ledger')).map(({ code }: { code: string }) => code);
  const before = await codes();
  const balances: number[] = [];
  for (let i = 0; i < 5; i++) {
    balances.push((await user.expect(200, '/api/billing/usage')).credits.balance);
    const { spendable, held } = await user.expect(200, '/api/billing/estimate');
    balances.push(spendable + held, (await user.expect(200, '/api/account')).credits);
    await sleep(400);
  }
  for (const [i, balance] of balances.slice(1).entries())
    assert.ok(balance <= (balances[i] ?? 0) + 1e-9, `it only falls: ${balances}`);
  assert.ok((balances.at(-1) ?? 0) < (balances[0] ?? 0), `it falls while a machine runs: ${balances}`);
  assert.deepEqual(await codes(), before);
  await post(`${vm}/stop?force=true`);
  const { credits } = await user.expect(200, '/api/billing/usage');
  assert.equal((await user.expect(200, '/api/account')).credits, credits.balance);
  assert.equal((await user.expect(200, '/api/billing/estimate')).spendable, credits.balance);
  assert.deepEqual(await codes(), ['release', ...before]);
  await user.expect(200, vm, { method: 'DELETE' });
});

test('a machine costs its price by the second that it ran', { skip }, async () => {
  const vm = await newVm(user, idle);
  assert.deepEqual(await billOf(user, idOf(vm)), { ms: 0, micro: 0 }, 'what never ran costs nothing');
  let under = { ms: 0, micro: 0 };
  const { least, most } = await runFor(vm, async () => {
    await sleep(RUN_MS / 2);
    under = await billOf(user, idOf(vm));
    await sleep(RUN_MS / 2);
  });
  assert.ok(under.ms >= RUN_MS / 2, `of the open hour only ${under.ms} ms are charged`);
  const bill = await billOf(user, idOf(vm));
  assertBill(bill, msOf(runsOf(dataDir, idOf(vm))), TICKS_MS);
  assert.ok(bill.ms >= least - TICKS_MS && bill.ms <= most + TICKS_MS, `${least} ${bill.ms} ${most}`);
  assert.deepEqual(await billOf(user, idOf(vm)), bill, 'a second later: what is stopped costs nothing more');
  assertBooks(dataDir);
});

test('started and stopped again and again, nothing is lost and nothing doubled', { skip }, async () => {
  const vm = await newVm(user, idle);
  let [least, most] = [0, 0];
  for (let i = 0; i < TIMES; i++) {
    const run = await runFor(vm, async () => {
      if (i % 5 === 0) await user.expect(200, '/api/billing/usage');
    });
    least += run.least;
    most += run.most;
  }
  const runs = runsOf(dataDir, idOf(vm));
  assert.equal(runs.length, TIMES);
  const bill = await billOf(user, idOf(vm));
  assertBill(bill, msOf(runs), TIMES * TICKS_MS);
  assert.ok(bill.ms >= least && bill.ms <= most, `${least} ${bill.ms} ${most}`);
});

test('Cloudlet dead while it runs on: that time is charged, once', { skip }, async () => {
  const vm = await newVm(user, idle);
  const { least, most } = await runFor(vm, async () => {
    const pids = guestPids(idOf(vm));
    await whileDead(() => sleep(DEAD_MS));
    await eventually('the machine', async () => (await user.expect(200, vm)).state === 'running');
    assert.deepEqual(guestPids(idOf(vm)), pids);
  });
  const bill = await billOf(user, idOf(vm));
  assert.equal(runsOf(dataDir, idOf(vm)).length, 1);
  assertBill(bill, msOf(runsOf(dataDir, idOf(vm))), TICKS_MS);
  assert.ok(least > DEAD_MS && bill.ms >= least - TICKS_MS && bill.ms <= most + TICKS_MS);
});

test('killed while Cloudlet is dead: charged to its real end, with the reason', { skip }, async () => {
  const vm = await newVm(user, idle);
  await post(`${vm}/start`);
  await sleep(RUN_MS / 4);
  let killedAt = 0;
  await whileDead(async () => {
    await sleep(DEAD_MS / 4);
    for (const pid of guestPids(idOf(vm))) process.kill(pid, 'SIGKILL');
    killedAt = Date.now();
    await sleep(DEAD_MS);
  });
  const gone = await eventually('its end', async () => {
    const now = await user.expect(200, vm);
    return now.state === 'running' ? null : now;
  });
  assert.deepEqual([gone.state, gone.state_reason.code], ['error', 'crashed']);
  assert.match(gone.state_reason.message, /SIGKILL/);
  const [run] = runsOf(dataDir, idOf(vm));
  assert.ok(run && Math.abs(run.to - killedAt) <= 1000, `killed at ${killedAt}, charged up to ${run?.to}`);
  assertBill(await billOf(user, idOf(vm)), run.to - run.from, TICKS_MS);
});

test('starts at the same time, with credits for a few: just so many run', { skip }, async () => {
  const anyone = user.as(undefined);
  const account = await anyone.register();
  const owner = anyone.as(account.api_key);
  const vms = await Promise.all(Array.from({ length: SPENDERS }, () => newVm(owner, idle)));
  const spare = T2_MICRO_PRICE / 2;
  const amount =
    (AFFORDED * T2_MICRO_PRICE + spare) / 1e6 - (await owner.expect(200, '/api/account')).credits;
  const admin = anyone.as(ADMIN_KEY);
  const take = { json: { amount: Number(amount.toFixed(6)), reason: 'a test' } };
  await admin.expect(200, `/api/admin/accounts/${account.id}/credits`, take);
  const answers = await Promise.all(vms.map((vm) => owner.call(`${vm}/start`, { method: 'POST' })));
  const refused = answers.filter(({ status }) => status !== 200);
  for (const { status, body } of refused) {
    assert.deepEqual([status, body.code], [402, 'insufficient_credits'], JSON.stringify(body));
    assert.equal(body.needed, T2_MICRO_PRICE / 1e6);
  }
  assert.equal(answers.length - refused.length, AFFORDED);
  const states = (await owner.expect(200, '/api/vms')).map(({ state }: { state: string }) => state);
  assert.equal(states.filter((state: string) => state === 'running').length, AFFORDED);
  assertBooks(dataDir);
  await removeAll(owner);
  await sleep(1100);
  const { credits } = await owner.expect(200, '/api/billing/usage');
  assert.equal(credits.held, 0, 'all that was held is given back');
});

test('a grant whose answers are lost, asked for again and again with its key, is given once', async () => {
  const anyone = user.as(undefined);
  const { id, api_key } = await anyone.register();
  const { credits } = await anyone.as(api_key).expect(200, '/api/account');
  const idempotencyKey = randomUUID();
  const path = `/api/admin/accounts/${id}/credits`;
  const body = JSON.stringify({ amount: 1.5, reason: `grant ${idempotencyKey}` });
  const headers = { 'content-type': 'application/json', 'x-api-key': ADMIN_KEY };
  const ask = async (dropAfterMs: number) => {
    const asked = request(`${cloud.api}${path}`, {
      method: 'POST',
      headers: { ...headers, 'idempotency-key': idempotencyKey, 'content-length': Buffer.byteLength(body) },
      agent: false,
    });
    asked.on('error', () => {});
    const closed = once(asked, 'close').catch(() => {});
    asked.end(body);
    await once(asked, 'finish').catch(() => {});
    await sleep(dropAfterMs);
    asked.destroy();
    await closed;
  };
  await Promise.all(Array.from({ length: 50 }, (_, i) => ask(i % 25)));
  const admin = anyone.as(ADMIN_KEY);
  const again = { json: JSON.parse(body), headers: { 'idempotency-key': idempotencyKey } };
  const answer = await eventually('an answer', async () => {
    const { status, body } = await admin.call(path, again);
    return status === 409 ? null : { status, credits: body.credits };
  });
  assert.deepEqual(answer, { status: 200, credits: credits + 1.5 });
  const booked = assertBooks(dataDir).filter(({ reference }) => reference.includes(idempotencyKey));
  assert.equal(booked.length, 1);
});
