/** Root that cannot run machines as separate users: in a user namespace, or with few capabilities. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess, NO_OTHER_USERS } from '../harness/cloud-process.ts';
import { cannotRunGuests, guestPids, newVm, removeAll, sshBanner } from './vms-kit.ts';

const NAMESPACE = ['unshare', '--user', '--map-root-user'];
const FEW = ['setpriv', '--bounding-set=-chown,-setuid'];

function cannot(wrapper: readonly string[]): string | false {
  const [program = '', ...words] = [...wrapper, 'sh', '-c', 'test "$(id -u)" = 0'];
  const works = spawnSync(program, words).status === 0;
  return cannotRunGuests() || (works ? false : `this host does not let us run ${program}`);
}

/** Creates, starts and stops a machine, and returns the messages of the log and the status about it. */
async function oneMachine(t: TestContext, wrapper: readonly string[]) {
  const cloud = await CloudProcess.start({ wrapper });
  t.after(() => cloud.stop());
  const anyone = await CheckedClient.open(cloud.api);
  const owner = anyone.as((await anyone.register()).api_key);
  const vm = await newVm(owner);
  const { vm_id, ip_address } = await owner.expect(200, `${vm}/start`, { method: 'POST' });
  const [pid] = guestPids(vm_id);
  assert.equal(statSync(`/proc/${pid}`).uid, statSync(`/proc/${cloud.pid}`).uid);
  assert.match(readFileSync(`/proc/${pid}/status`, 'utf8'), /^CapEff:\s+0+$/m);
  assert.match(await sshBanner(ip_address), /^SSH-2\.0-/);
  const { components } = await anyone.as(ADMIN_KEY).expect(200, '/api/system/status');
  const stopped = await owner.expect(200, `${vm}/stop?grace=30`, { method: 'POST' });
  assert.equal(stopped.state_reason.code, 'shut_down');
  await removeAll(owner);
  assert.equal(components.compute.status, 'ok');
  return { log: cloud.output, compute: components.compute };
}

test('root of a user namespace: machines run under its own user, and it says so', {
  skip: cannot(NAMESPACE),
}, async (t) => {
  const { log, compute } = await oneMachine(t, NAMESPACE);
  assert.match(
    log,
    /machines share Cloudlet's own user because this user namespace has no user ids \d+ to \d+/,
  );
  assert.match(compute.problem, /can reach every port of this host\. .* this user namespace has no user ids/);
  assert.match(compute.fix, /as root of the host/);
});

test('root without the capabilities: the same, and it names those that are missing', {
  skip: cannot(FEW) || (process.getuid?.() === 0 ? false : 'needs root, which gives capabilities up'),
}, async (t) => {
  const { log, compute } = await oneMachine(t, FEW);
  assert.match(log, /machines share Cloudlet's own user because it lacks CAP_CHOWN, CAP_SETUID/);
  assert.match(compute.problem, /it lacks CAP_CHOWN, CAP_SETUID/);
  assert.match(compute.fix, /^give Cloudlet CAP_CHOWN, CAP_SETUID/);
});

test('a machine made with its own user is not started without it', {
  skip: cannot(FEW) || NO_OTHER_USERS,
}, async (t) => {
  const before = await CloudProcess.start();
  t.after(() => before.stop());
  const { api_key } = await (await CheckedClient.open(before.api)).register();
  const vm = await newVm((await CheckedClient.open(before.api)).as(api_key));
  await before.end();
  const later = await CloudProcess.start({ dataDir: before.dataDir, wrapper: FEW });
  t.after(() => later.stop());
  const owner = (await CheckedClient.open(later.api)).as(api_key);
  const refusal = await owner.refused(503, 'engine_unavailable', [`${vm}/start`, { method: 'POST' }]);
  assert.match(refusal.detail, /this machine needs its own user, and machines share/);
  assert.match(refusal.hint, /CAP_CHOWN, CAP_SETUID/);
});
