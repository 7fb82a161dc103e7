/**
 * Machines of an account that is suspended by an administrator, or closed: which ones stop, and which ones
 * start.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import type { Account } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { runsOf } from './billing-kit.ts';
import { cannotRunGuests, guestPids, idleImage, newVm, removeAll } from './vms-kit.ts';

const skip = cannotRunGuests();
const env = { CLOUDLET_VM_GRACE_SECONDS: '1', CLOUDLET_CLOSED_ACCOUNT_DAYS: '0' };
let cloud: CloudProcess;
let anyone: CheckedClient;
let idle: { readonly image: string };
before(async () => {
  if (skip !== false) return;
  cloud = await CloudProcess.start({ env });
  anyone = await CheckedClient.open(cloud.api);
  idle = await idleImage(anyone.as(ADMIN_KEY));
});
after(async () => {
  if (skip === false) await cloud.stop();
});

async function restart(): Promise<void> {
  await cloud.crash();
  await cloud.start();
  anyone = await CheckedClient.open(cloud.api);
}

const post = (user: CheckedClient, path: string) => user.expect(200, path, { method: 'POST' });
const ofAdmin = (account: Account, verb: string, json: object = {}) =>
  anyone.as(ADMIN_KEY).expect(200, `/api/admin/accounts/${account.id}/${verb}`, { json });
const suspend = (account: Account) => ofAdmin(account, 'suspend', { reason: 'a test' });
const resume = (account: Account) => ofAdmin(account, 'resume');
const give = (account: Account, amount: number) => ofAdmin(account, 'credits', { amount, reason: 'a test' });

/** From the view of the owner. */
async function looks(account: Account, path: string): Promise<string> {
  const { state, state_reason } = await anyone.as(account.api_key).expect(200, path);
  return `${state} ${state_reason?.code ?? ''}`.trim();
}
const becomes = (account: Account, path: string, wanted: string) =>
  eventually(`a machine that is ${wanted}`, async () => (await looks(account, path)) === wanted);
const idOf = (path: string) => path.slice('/api/vms/'.length);
const ends = (path: string) =>
  eventually('the end of the guest', async () => guestPids(idOf(path)).length === 0);

describe('a suspended account', { skip }, () => {
  let account: Account;
  let vm: string;
  let halted: string;
  const owner = () => anyone.as(account.api_key);
  before(async () => {
    account = await anyone.register();
    [vm, halted] = [await newVm(owner(), idle), await newVm(owner(), idle)];
    for (const path of [vm, halted]) await post(owner(), `${path}/start`);
    await post(owner(), `${halted}/stop?force=true`);
  });
  after(() => removeAll(owner()));

  test('has its machines stopped; its end starts again what it stopped, and nothing else', async () => {
    await suspend(account);
    await ends(vm);
    await owner().refused(403, 'account_suspended', [`${vm}/start`, { method: 'POST' }]);
    await resume(account);
    await becomes(account, vm, 'running');
    assert.equal(await looks(account, halted), 'stopped powered_off');
    assert.equal(guestPids(idOf(vm)).length, 1);
  });

  test('goes the same way when Cloudlet is killed in between', async () => {
    await suspend(account);
    await restart();
    await ends(vm);
    await resume(account);
    await restart();
    await becomes(account, vm, 'running');
  });

  test('that is resumed without credits waits for a top-up, and says why it stands still', async () => {
    await suspend(account);
    await ends(vm);
    await eventually('all that was held', async () => {
      const all = await anyone.as(ADMIN_KEY).expect(200, '/api/admin/accounts');
      const { credits, credits_held } = all.find(({ id }: Account) => id === account.id);
      if (credits_held !== 0) return false;
      await give(account, -credits);
      return true;
    });
    await resume(account);
    await restart();
    assert.equal(await looks(account, vm), 'stopped account_suspended');
    await owner().refused(402, 'insufficient_credits', [`${vm}/start`, { method: 'POST' }]);
    await give(account, 5);
    await becomes(account, vm, 'running');
    assert.equal(await looks(account, halted), 'stopped powered_off');
  });
});

test('a closed account: its machine is stopped, and counted to its stop', { skip }, async () => {
  const account = await anyone.register();
  const owner = anyone.as(account.api_key);
  const vm = await newVm(owner, idle);
  await post(owner, `${vm}/start`);
  await owner.expect(200, '/api/account', { method: 'DELETE' });
  await ends(vm);
  await eventually('the end of its run', async () => {
    try {
      return runsOf(cloud.dataDir, idOf(vm)).length === 1;
    } catch {
      return false;
    }
  });
});
