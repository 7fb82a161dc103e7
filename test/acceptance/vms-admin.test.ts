/**
 * Machines of other accounts: an administrator lists, stops and deletes them; those of a closed account are
 * deleted.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess, POOL } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { cannotRunGuests, guestPids, newVm } from './vms-kit.ts';

const skip = cannotRunGuests();
/** Six addresses, in a range that the other cloud here does not use. */
const SMALL = POOL.replace(/(\d+)\.0\/22$/, (_, third) => `${Number(third) + 3}.0/29`);

/** A closed account is removed immediately. */
const env = { CLOUDLET_CLOSED_ACCOUNT_DAYS: '0' };

interface Listed {
  readonly vm_id: string;
  readonly account_id: number;
}

let cloud: CloudProcess;
let anyone: CheckedClient;
let admin: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start({ env });
  anyone = await CheckedClient.open(cloud.api);
  admin = anyone.as(ADMIN_KEY);
});
after(() => cloud.stop());

async function account() {
  const { id, api_key } = await anyone.register();
  return { id, user: anyone.as(api_key) };
}

const post = (path: string) => [path, { method: 'POST' }] as [string, { method: string }];
const remove = (path: string) => [path, { method: 'DELETE' }] as [string, { method: string }];
const ownersOf = (list: Listed[]) => list.map(({ account_id }) => account_id);

test('the list has the machines of all accounts, or of one, with their owners, in pages too', async () => {
  const [one, two] = [await account(), await account()];
  for (const { user } of [one, two, one]) await newVm(user);
  const all = await admin.expect(200, '/api/admin/vms');
  assert.deepEqual(ownersOf(all).slice(-3), [one.id, two.id, one.id]);
  const mine = `/api/admin/vms?account_id=${one.id}`;
  assert.deepEqual(ownersOf(await admin.expect(200, mine)), [one.id, one.id]);
  const page = await admin.call(`${mine}&limit=1`);
  assert.deepEqual(ownersOf(page.body), [one.id]);
  const next = /<([^>]+)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
  const rest = await admin.expect(200, new URL(next, cloud.api).href.slice(new URL(cloud.api).origin.length));
  assert.deepEqual([...page.body, ...rest], await admin.expect(200, mine));
  assert.deepEqual(await admin.expect(200, '/api/admin/vms?account_id=999999'), []);
});

test('an administrator stops and deletes a machine, as its owner could, and no other', async () => {
  const { user } = await account();
  const path = await newVm(user);
  const theirs = path.replace('/api/', '/api/admin/');
  await admin.refused(409, 'vm_not_stopped', remove(theirs));
  const stopped = await admin.expect(200, ...post(`${theirs}/stop`));
  assert.equal(stopped.state, 'stopped');
  assert.equal((await user.expect(200, path)).state, 'stopped');
  await admin.expect(200, ...remove(theirs));
  await user.refused(404, 'vm_not_found', [path]);
  await admin.refused(404, 'vm_not_found', remove(theirs));
  await admin.refused(404, 'vm_not_found', post(`${theirs}/stop`));
});

test('a machine that an administrator stopped says so, and its owner may start it', { skip }, async () => {
  const { user } = await account();
  const path = await newVm(user);
  await user.expect(200, ...post(`${path}/start`));
  const stopped = await admin.expect(200, ...post(`${path.replace('/api/', '/api/admin/')}/stop?force=true`));
  assert.deepEqual([stopped.state, stopped.state_reason.code], ['stopped', 'stopped_by_administrator']);
  assert.equal((await user.expect(200, ...post(`${path}/start`))).state, 'running');
  await user.expect(200, ...post(`${path}/stop?force=true`));
});

test('the machines of a closed account are deleted, and their addresses are free', async (t) => {
  const small = await CloudProcess.start({ env: { ...env, CLOUDLET_VM_POOL: SMALL } });
  t.after(() => small.stop());
  const guests = await CheckedClient.open(small.api);
  for (const round of [1, 2, 3]) {
    const owner = guests.as((await guests.register()).api_key);
    for (let made = 0; made < 6; made++) await newVm(owner);
    const create = { json: { name: 'one-more', instance_type: 't2.micro' } };
    await owner.refused(503, 'no_free_address', ['/api/vms', create]);
    await owner.expect(200, ...remove('/api/account'));
    const left = () => guests.as(ADMIN_KEY).expect(200, '/api/admin/vms');
    await eventually(`the end of machines, round ${round}`, async () => (await left()).length === 0);
  }
});

test('a machine that runs when its account is closed is stopped and deleted', { skip }, async () => {
  const { id, user } = await account();
  const path = await newVm(user);
  const { vm_id } = await user.expect(200, ...post(`${path}/start`));
  assert.equal(guestPids(vm_id).length, 1);
  await user.expect(200, ...remove('/api/account'));
  const left = () => admin.expect(200, `/api/admin/vms?account_id=${id}`);
  await eventually('its end', async () => (await left()).length === 0);
  assert.deepEqual(guestPids(vm_id), []);
});
