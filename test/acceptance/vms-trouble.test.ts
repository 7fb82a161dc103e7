/** Guests that panic, that do not listen, and consoles of users without further access. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { WebSocket } from 'ws';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { cannotRunGuests, guestPids, idleImage, newVm, removeAll } from './vms-kit.ts';

const skip = cannotRunGuests();
const users: CheckedClient[] = [];
let cloud: CloudProcess;
let anyone: CheckedClient;
let user: CheckedClient;
before(async () => {
  if (skip !== false) return;
  cloud = await CloudProcess.start();
  anyone = await CheckedClient.open(cloud.api);
  user = anyone.as((await anyone.register()).api_key);
  users.push(user);
});
after(async () => {
  if (skip !== false) return;
  for (const each of users) await removeAll(each);
  await cloud.stop();
});

const post = (path: string) => user.expect(200, path, { method: 'POST' });

test('a guest whose kernel panics: error, with the reason; it can be started again', { skip }, async () => {
  const script = '#!/bin/sh\n[ -e ~/once ] && exit\ntouch ~/once\nsync\necho c >/proc/sysrq-trigger\n';
  const vm = await newVm(user, { user_data: script });
  const { vm_id } = await post(`${vm}/start`);
  const failed = await eventually('the panic', async () => {
    const now = await user.expect(200, vm);
    return now.state === 'running' ? null : now;
  });
  assert.deepEqual([failed.state, failed.state_reason.code], ['error', 'guest_panic']);
  assert.deepEqual(guestPids(vm_id), []);
  assert.equal((await post(`${vm}/start`)).state, 'running');
  assert.equal((await post(`${vm}/stop?force=true`)).state, 'stopped');
});

test('force ends the grace of a stop that a deaf guest holds up', { skip }, async () => {
  const isEar = 'grep -q /lib/tiny/power-button "$process/cmdline"';
  const deafen = `for process in /proc/[1-9]*; do ${isEar} && kill "\${process#/proc/}" && echo deaf now; done`;
  const vm = await newVm(user, { user_data: `#!/bin/sh\n(${deafen}) >/dev/console 2>/dev/null\n` });
  const { vm_id } = await post(`${vm}/start`);
  await eventually('its deafness', async () =>
    String((await user.call(`${vm}/log`)).body).includes('deaf now'),
  );
  const gentle = post(`${vm}/stop?grace=300`);
  await eventually('the stop', async () => (await user.expect(200, vm)).state === 'stopping');
  assert.equal(guestPids(vm_id).length, 1);
  await user.refused(409, 'vm_locked', [`${vm}/start`, { method: 'POST' }]);
  const [one, two] = await Promise.all([gentle, post(`${vm}/stop?force=true`)]);
  assert.deepEqual([one.state, one.state_reason.code], ['stopped', 'powered_off']);
  assert.deepEqual(two, one);
  assert.deepEqual(guestPids(vm_id), []);
});

/** Opens a console and returns a promise of its close code. */
async function openConsole(vm: string, options: { key?: string; url?: string }): Promise<Promise<number>[]> {
  const url = options.url ?? `${cloud.api.replace('http', 'ws')}${vm}/console`;
  const headers = options.key === undefined ? {} : { 'x-api-key': options.key };
  const socket = new WebSocket(url, { headers });
  const closed = new Promise<number>((resolve) => socket.on('close', resolve));
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  return [closed];
}

test('a console ends when its key is revoked or rotated, or the account suspended', { skip }, async () => {
  const account = await anyone.register();
  const owner = anyone.as(account.api_key);
  users.push(owner);
  const vm = await newVm(owner, await idleImage(anyone.as(ADMIN_KEY)));
  await owner.expect(200, `${vm}/start`, { method: 'POST' });
  const made = await owner.expect(201, '/api/account/access-keys', {
    json: { name: 'console', scopes: ['compute:*'] },
  });
  const access = owner.as(made.api_key);
  const ticket = async () => (await access.expect(201, `${vm}/console-tickets`, { json: {} })).url;
  const late = await ticket();
  const [byKey, byTicket, byMain] = [
    await openConsole(vm, { key: made.api_key }),
    await openConsole(vm, { url: await ticket() }),
    await openConsole(vm, { key: account.api_key }),
  ];
  await owner.expect(200, `/api/account/access-keys/${made.id}`, { method: 'DELETE' });
  assert.deepEqual(await Promise.all([...byKey, ...byTicket]), [1008, 1008]);
  await assert.rejects(openConsole(vm, { url: late }), /401/);

  const rotated = await owner.expect(200, '/api/account/api-key', {
    json: { overlap_seconds: 0 },
  });
  assert.deepEqual(await Promise.all(byMain), [1008]);
  const again = owner.as(rotated.api_key);
  users[users.length - 1] = again;
  const [bySuspended] = await openConsole(vm, { key: rotated.api_key });
  const admin = anyone.as(ADMIN_KEY);
  const path = `/api/admin/accounts/${account.id}`;
  await admin.expect(200, `${path}/suspend`, { json: { reason: 'a test' } });
  assert.equal(await bySuspended, 1008);
  await eventually('the end of its guest', async () => guestPids(vm.slice('/api/vms/'.length)).length === 0);
  await admin.expect(200, `${path}/resume`, { method: 'POST' });
  await eventually('its machine', async () => (await again.expect(200, vm)).state === 'running');
});
