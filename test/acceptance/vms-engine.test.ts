/** An engine that is not installed, or is installed while Cloudlet runs; and Cloudlet without privileges. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess, NO_OTHER_READERS } from '../harness/cloud-process.ts';
import { cannotRunGuests, guestPids, newVm, removeAll, sshBanner } from './vms-kit.ts';

const NOBODY = 65_534;
const guests = cannotRunGuests();
const isRoot = process.getuid?.() === 0;
const namespaces = isRoot && spawnSync('unshare', ['--mount', 'true']).status === 0;
const noMounts = namespaces ? notInstalled('mount') : 'hiding a program needs root and mount namespaces';
const skipHidden = guests || noMounts;
const skipPlain = guests || NO_OTHER_READERS;

/** The host promises no more memory than it has. */
const STRICT = { path: '/proc/sys/vm/overcommit_memory', content: '2\n' };

/** The paths where the server looks for the engine. */
function enginePath(): string {
  return realpathSync(spawnSync('which', ['qemu-system-x86_64'], { encoding: 'utf8' }).stdout.trim());
}

interface Hidden {
  readonly user: CheckedClient;
  /** Shows the server the real files. */
  readonly uncover: () => void;
}

interface Sight {
  readonly path: string;
  readonly content: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A cloud that sees `content` instead of the file at `path`: only it and its child processes do. */
async function cloudThatSees(t: TestContext, { path, content, env = {} }: Sight): Promise<Hidden> {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-hidden-'));
  const other = join(directory, 'other');
  writeFileSync(other, content);
  const hide = 'mount --bind "$0" "$1" && shift && exec "$@"';
  const wrapper = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', hide, other, path];
  const cloud = await CloudProcess.start({ wrapper, env });
  t.after(async () => {
    await cloud.stop();
    rmSync(directory, { recursive: true });
  });
  const anyone = await CheckedClient.open(cloud.api);
  const uncover = () => {
    const { status } = spawnSync('nsenter', ['--target', String(cloud.pid), '--mount', 'umount', path]);
    assert.equal(status, 0);
  };
  return { user: anyone.as((await anyone.register()).api_key), uncover };
}

test('without QEMU a machine is made and not started; once it is installed, it starts', {
  skip: skipHidden,
}, async (t) => {
  const { user, uncover } = await cloudThatSees(t, { path: enginePath(), content: '' });
  // Programs without a machine are not reported as missing.
  assert.equal((await user.expect(200, '/api/system/status')).status, 'ok');
  const vm = await newVm(user);
  const start = [`${vm}/start`, { method: 'POST' }] as [string, { method: string }];
  const refusal = await user.refused(503, 'engine_unavailable', start);
  assert.match(refusal.hint, /apt-get install .*qemu-system-x86/);
  const waiting = await user.expect(200, vm);
  assert.deepEqual([waiting.state, waiting.state_reason.code], ['created', 'engine_unavailable']);
  const { status, components } = await user.expect(200, '/api/system/status');
  assert.deepEqual([status, components.compute.status], ['degraded', 'unavailable']);
  assert.match(components.compute.problem, /QEMU/);
  assert.match(components.compute.fix, /apt-get install .*qemu-system-x86/);
  uncover();
  assert.equal((await user.expect(200, '/api/system/status')).status, 'ok');
  const { vm_id } = await user.expect(200, ...start);
  assert.equal(guestPids(vm_id).length, 1);
  await removeAll(user);
  assert.deepEqual(guestPids(vm_id), []);
});

test('a host without memory for one more says so; when there is some, it starts', {
  skip: skipHidden,
}, async (t) => {
  const { user, uncover } = await cloudThatSees(t, { path: '/proc/meminfo', content: meminfo(8192, 500) });
  const vm = await newVm(user);
  const start = [`${vm}/start`, { method: 'POST' }] as [string, { method: string }];
  const refusal = await user.refused(503, 'insufficient_capacity', start);
  assert.match(refusal.detail, /: 500 MiB of 8192 MiB are free, 768 MiB are needed$/);
  assert.match(refusal.hint, /^no machine is running: give this host more memory/);
  const waiting = await user.expect(200, vm);
  assert.deepEqual([waiting.state, waiting.state_reason.code], ['created', 'insufficient_capacity']);
  uncover();
  const { vm_id } = await user.expect(200, ...start);
  assert.equal(guestPids(vm_id).length, 1);
  await removeAll(user);
});

test('a server of 1 GB, with half of it free, starts a machine', { skip: skipHidden }, async (t) => {
  const { user } = await cloudThatSees(t, { path: '/proc/meminfo', content: meminfo(960, 480) });
  const vm = await newVm(user);
  const { vm_id } = await user.expect(200, `${vm}/start`, { method: 'POST' });
  assert.equal(guestPids(vm_id).length, 1);
  await removeAll(user);
});

test('machines have no more memory together than the host lets them have; any size can be created', {
  skip: skipHidden,
}, async (t) => {
  // 3 GiB, minus 384 MiB for the host, times 1.5: 4032 MiB.
  const { user } = await cloudThatSees(t, { path: '/proc/meminfo', content: meminfo(3072, 2500) });
  const types: { startable: boolean; instance_type: string; reason: string }[] = await user.expect(
    200,
    '/api/instance-types',
  );
  const startable = types.filter((type) => type.startable).map((type) => type.instance_type);
  assert.deepEqual(startable, ['t2.micro', 't2.small']);
  const reasons = types.map((type) => type.reason);
  assert.deepEqual(reasons.slice(0, 2), [null, null]);
  assert.match(
    reasons.at(-1) ?? '',
    /^It needs 64 GB of memory, and all virtual machines of this host together may have 3\.9 GB$/,
  );
  const start = (vm: string) => [`${vm}/start`, { method: 'POST' }] as [string, { method: string }];
  const large = await newVm(user, { instance_type: 'p3.2xlarge' });
  const refusal = await user.refused(503, 'insufficient_capacity', start(large));
  assert.match(
    refusal.detail,
    /^The virtual machine is too large for this host\. It needs 64 GB of memory, and/,
  );
  assert.match(refusal.hint, /smaller instance type, or ask the operator of this cloud for more memory/);
  assert.equal((await user.expect(200, large)).state, 'created');
  // A single account reaches its own quota first.
  const { id } = await user.expect(200, '/api/account');
  const quotas = { method: 'PATCH', json: { quotas: { memory_mb: null } } };
  await user.as(ADMIN_KEY).expect(200, `/api/admin/accounts/${id}`, quotas);
  const [one, other] = [
    await newVm(user, { instance_type: 't2.small' }),
    await newVm(user, { instance_type: 't2.small' }),
  ];
  await user.expect(200, ...start(one));
  const full = await user.refused(503, 'insufficient_capacity', start(other));
  assert.match(full.detail, /other machines use 2048 MiB of the 4032 MiB/);
  assert.match(full.hint, /^stop a machine, /);
  await user.expect(200, `${one}/stop?force=true`, { method: 'POST' });
  await user.expect(200, ...start(other));
  await removeAll(user);
});

test('a machine starts where the host promises no more memory than it has', {
  skip: skipHidden,
}, async (t) => {
  const { user } = await cloudThatSees(t, STRICT);
  const vm = await newVm(user);
  const { vm_id } = await user.expect(200, `${vm}/start`, { method: 'POST' });
  assert.equal(guestPids(vm_id).length, 1);
  await removeAll(user);
});

/** Why this host overcommits memory, even when asked to reserve it for one program, or false. */
function givesTooMuch(): string | false {
  const figure = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]);
  if (readFileSync('/proc/sys/vm/overcommit_memory', 'utf8').trim() === '1') return 'it promises any amount';
  const isSmall = figure('MemTotal') + figure('SwapTotal') < 60 * 1024 * 1024;
  return isSmall ? false : 'it has memory for the largest type';
}

test('a machine for which such a host has no memory is refused, and a smaller one starts', {
  skip: skipHidden || givesTooMuch(),
}, async (t) => {
  const { user } = await cloudThatSees(t, { ...STRICT, env: { CLOUDLET_MEMORY_OVERCOMMIT: '64' } });
  const large = await newVm(user, { instance_type: 'p3.2xlarge' });
  const start = [`${large}/start`, { method: 'POST' }] as [string, { method: string }];
  const refusal = await user.refused(503, 'insufficient_capacity', start);
  assert.match(refusal.detail, /does not overcommit memory: \d+ MiB are left/);
  assert.match(refusal.hint, /smaller instance type.*sysctl -w vm\.overcommit_memory=0$/);
  assert.equal((await user.expect(200, large)).state_reason.code, 'insufficient_capacity');
  const small = await newVm(user);
  await user.expect(200, `${small}/start`, { method: 'POST' });
  await removeAll(user);
});

/** As in /proc, with these figures in MiB. */
function meminfo(total: number, available: number): string {
  return readFileSync('/proc/meminfo', 'utf8')
    .replace(/^MemTotal:.*$/m, `MemTotal: ${total * 1024} kB`)
    .replace(/^MemAvailable:.*$/m, `MemAvailable: ${available * 1024} kB`);
}

test('as an ordinary user: guests start, answer on 2222 and stop', { skip: skipPlain }, async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-plain-'));
  chownSync(dataDir, NOBODY, NOBODY);
  chmodSync(dataDir, 0o700);
  const user = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', '--inh-caps=-all'];
  const cloud = await CloudProcess.start({ dataDir, wrapper: user });
  t.after(async () => {
    await cloud.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const anyone = await CheckedClient.open(cloud.api);
  const owner = anyone.as((await anyone.register()).api_key);
  const vm = await newVm(owner);
  const { vm_id, ip_address } = await owner.expect(200, `${vm}/start`, { method: 'POST' });
  const [pid, ...others] = guestPids(vm_id);
  assert.deepEqual(others, []);
  assert.equal(statSync(`/proc/${pid}`).uid, NOBODY);
  assert.match(readFileSync(`/proc/${pid}/status`, 'utf8'), /^CapEff:\s+0+$/m);
  assert.match(await sshBanner(ip_address), /^SSH-2\.0-/);
  const stopped = await owner.expect(200, `${vm}/stop?grace=30`, { method: 'POST' });
  assert.equal(stopped.state_reason.code, 'shut_down');
  await removeAll(owner);
});
