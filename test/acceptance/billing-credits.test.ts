/**
 * Credits that run out while a machine runs: grace period, stop, a top-up, and a start; also across kills.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import type { Account } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { cannotRunGuests, idleImage, newVm, removeAll } from './vms-kit.ts';

/** Credits are checked just as often. Long enough to observe a running machine in it. */
const GRACE_SECONDS = 3;
const env = {
  CLOUDLET_CREDIT_GRACE_SECONDS: String(GRACE_SECONDS),
  CLOUDLET_VM_GRACE_SECONDS: '1',
};
let cloud: CloudProcess;
let client: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start({ env });
  client = await CheckedClient.open(cloud.api);
});
after(() => cloud.stop());

const credits = (account: Account) => `/api/admin/accounts/${account.id}/credits`;
const give = (account: Account, amount: number, more: object = {}) =>
  client.as(ADMIN_KEY).expect(200, credits(account), { json: { amount, reason: 'test', ...more } });

/** Removes all credits that may be spent, except this. */
async function leave(account: Account, micro: number): Promise<void> {
  const { credits: all, credits_held } = await client.as(account.api_key).expect(200, '/api/account');
  const spendable = Math.round((all - credits_held) * 1e6);
  await give(account, -(spendable - micro) / 1e6);
}

const stateIs = (user: CheckedClient, wanted: string) =>
  eventually(`the state ${wanted}`, async () => {
    const account = await user.expect(200, '/api/account');
    return account.billing_state === wanted && account;
  });
const vmIs = (user: CheckedClient, path: string, wanted: string) =>
  eventually(`a machine that is ${wanted}`, async () => {
    const vm = await user.expect(200, path);
    return vm.state === wanted && vm;
  });
const post = (user: CheckedClient, path: string) => user.expect(200, path, { method: 'POST' });

describe('without a credit left', () => {
  test('nothing new is begun, and all that is there can be read, exported and deleted', async () => {
    const account = await client.register();
    const user = client.as(account.api_key);
    await user.expect(201, '/api/buckets', { json: { name: 'kept' } });
    const { body } = await user.upload('kept', 'a.txt', 'mine');
    const vm = await newVm(user);
    await leave(account, 0);
    const bucket = await user.refused(402, 'insufficient_credits', [
      '/api/buckets',
      { json: { name: 'more' } },
    ]);
    assert.equal(bucket.available, 0);
    for (const call of [
      [`${vm}/start`, { method: 'POST' }],
      ['/api/vms', { json: { name: 'm', instance_type: 't2.micro' } }],
    ] as const) {
      const { needed, hint } = await user.refused(402, 'insufficient_credits', [...call]);
      assert.equal(needed, 0.0116, 'an hour of it');
      assert.ok(hint.includes(`POST /api/admin/accounts/${account.id}/credits`), hint);
    }
    assert.equal((await user.upload('kept', 'b.txt', 'more')).status, 402);
    assert.equal(String(await user.download(body.object_id)), 'mine');
    await user.expect(200, `/api/storage/${body.object_id}`, { method: 'DELETE' });
    // Nothing charged is running: no credits run out.
    assert.equal((await user.expect(200, '/api/account')).billing_state, 'ok');
    await give(account, 1);
    await user.expect(201, '/api/buckets', { json: { name: 'more' } });
    await removeAll(user).catch(() => {});
  });

  test('a start says what it needs', { skip: cannotRunGuests() }, async () => {
    const account = await client.register();
    const user = client.as(account.api_key);
    const vm = await newVm(user);
    await leave(account, 11_599);
    const problem = await user.refused(402, 'insufficient_credits', [`${vm}/start`, { method: 'POST' }]);
    assert.deepEqual([problem.needed, problem.available], [0.0116, 0.011599]);
    assert.match(problem.hint, /^Stop another machine, use a smaller instance type, or ask your /);
  });
});

describe('an id that the administrator chose', () => {
  test('is granted once, by any number of requests at once', async () => {
    const account = await client.register();
    const user = client.as(account.api_key);
    const transfer_id = `gift-${account.id}`;
    await Promise.all(Array.from({ length: 20 }, () => give(account, 2, { transfer_id })));
    assert.equal((await user.expect(200, '/api/account')).credits, 12);
    const json = { amount: 3, reason: 'test', transfer_id };
    await client.as(ADMIN_KEY).refused(409, 'transfer_exists', [credits(account), { json }]);
  });
});

describe('a machine whose account runs out', { skip: cannotRunGuests() }, () => {
  let account: Account;
  let user: CheckedClient;
  let vm: string;
  let stopped: string;
  const restart = async () => {
    await cloud.crash();
    await cloud.start();
    client = await CheckedClient.open(cloud.api);
    user = client.as(account.api_key);
  };
  before(async () => {
    account = await client.register();
    user = client.as(account.api_key);
    const idle = await idleImage(client.as(ADMIN_KEY));
    vm = await newVm(user, idle);
    stopped = await newVm(user, idle);
  });
  after(() => removeAll(user));

  test('runs on in grace, then is stopped', async () => {
    await post(user, `${vm}/start`);
    const held = await user.expect(200, '/api/account');
    assert.equal(held.credits_held, 0.0116);
    // A machine stopped by its owner stays stopped, whatever follows.
    await post(user, `${stopped}/start`);
    await post(user, `${stopped}/stop?force=true`);
    await leave(account, 5);
    const grace = await stateIs(user, 'grace');
    assert.ok(grace.grace_ends_at > grace.credits_exhausted_at);
    assert.equal((await user.expect(200, vm)).state, 'running');
    await user.refused(402, 'insufficient_credits', ['/api/buckets', { json: { name: 'more' } }]);
    await stateIs(user, 'suspended');
    const after = await vmIs(user, vm, 'stopped');
    assert.equal(after.state_reason.code, 'credits_exhausted');
    await user.refused(402, 'insufficient_credits', [`${vm}/start`, { method: 'POST' }]);
    await user.expect(200, '/api/vms');
  });

  test('is started again by a top-up, and none that its owner had stopped', async () => {
    await give(account, 10);
    await vmIs(user, vm, 'running');
    const shown = await user.expect(200, '/api/account');
    assert.deepEqual(
      [shown.billing_state, shown.credits_exhausted_at, shown.grace_ends_at],
      ['ok', null, null],
    );
    assert.equal((await user.expect(200, stopped)).state, 'stopped');
  });

  test('goes the same way when Cloudlet is killed at every step', async () => {
    await leave(account, 5);
    await stateIs(user, 'grace');
    await restart();
    await stateIs(user, 'suspended');
    await restart();
    await vmIs(user, vm, 'stopped');
    await restart();
    await give(account, 10);
    await restart();
    await vmIs(user, vm, 'running');
    await stateIs(user, 'ok');
  });
});
