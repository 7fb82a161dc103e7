import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { Cgroups, findParent, OWN_SUBGROUP, removeEmptyGroups } from './cgroups.ts';

const GROUP = 'cloudlet-cgroups-test';
const NAME = 'one';
const LIMITS = { 'memory.max': '67108864', 'pids.max': '129' };
const DELEGATED = '/system.slice/cloudlet.service';
const real = new Cgroups(GROUP);

let root: string;
beforeEach(() => {
  root = fs.mkdtempSync(join(tmpdir(), 'cloudlet-cgroups-'));
});
afterEach(() => fs.rmSync(root, { recursive: true, force: true }));

/** Plain files in place of the kernel's: written values can be read again. */
function paths(
  own: string,
  { controllers = 'cpuset cpu io memory pids', systemd = true, delegated = false } = {},
) {
  const mount = join(root, 'mount');
  fs.mkdirSync(join(mount, DELEGATED), { recursive: true });
  for (const folder of ['', DELEGATED]) {
    fs.writeFileSync(join(mount, folder, 'cgroup.controllers'), `${controllers}\n`);
  }
  fs.writeFileSync(join(root, 'self'), `4:memory:/other\n0::${own}\n`);
  if (systemd) fs.mkdirSync(join(root, 'systemd'), { recursive: true });
  const isDelegated = (unit: string) => delegated && unit === 'cloudlet.service';
  return { mount, self: join(root, 'self'), systemd: join(root, 'systemd'), isDelegated };
}

test('groups are made beside our own where systemd gave us a part of the tree', () => {
  const deps = paths(`${DELEGATED}/cloudlet-control`);
  const cgroups = new Cgroups(GROUP, deps);
  const parent = join(deps.mount, DELEGATED);
  fs.mkdirSync(join(parent, OWN_SUBGROUP));
  const before = ['cgroup.controllers', OWN_SUBGROUP];
  assert.deepEqual(fs.readdirSync(parent), before, 'nothing before the first process');
  cgroups.assign(NAME, 4711, LIMITS);
  assert.equal(cgroups.problem, '');
  for (const folder of [parent, join(parent, GROUP)]) {
    assert.equal(fs.readFileSync(join(folder, 'cgroup.subtree_control'), 'utf8'), '+memory +cpu +pids');
  }
  assert.equal(fs.readFileSync(join(parent, OWN_SUBGROUP, 'cpu.weight'), 'utf8'), '1000');
  assert.ok(!fs.existsSync(join(parent, GROUP, 'cpu.weight')), 'databases have the usual weight');
  const written = (name: string) => fs.readFileSync(join(parent, GROUP, NAME, name), 'utf8');
  assert.equal(written('cgroup.procs'), '4711');
  for (const [name, value] of Object.entries(LIMITS)) {
    assert.equal(written(name), value);
  }
});

test('where systemd made no subgroup we move into one, and all groups are beside it', () => {
  const deps = paths(DELEGATED, { delegated: true });
  const parent = join(deps.mount, DELEGATED);
  fs.writeFileSync(join(parent, 'cgroup.procs'), '4710\n');
  const below = () => fs.readdirSync(parent, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const cgroups = new Cgroups(GROUP, deps);
  assert.deepEqual(below(), [], 'nothing before the first process');
  cgroups.assign(NAME, 4711, LIMITS);
  assert.equal(cgroups.problem, '');
  assert.deepEqual(
    below()
      .map(({ name }) => name)
      .sort(),
    [`${GROUP}-${NAME}`, 'cloudlet-self'],
  );
  assert.equal(fs.readFileSync(join(parent, 'cloudlet-self/cgroup.procs'), 'utf8'), '4710');
  assert.equal(fs.readFileSync(join(parent, 'cloudlet-self/cpu.weight'), 'utf8'), '1000');
  assert.equal(fs.readFileSync(join(parent, 'cgroup.subtree_control'), 'utf8'), '+memory +cpu +pids');
  const group = join(parent, `${GROUP}-${NAME}`);
  assert.equal(fs.readFileSync(join(group, 'cgroup.procs'), 'utf8'), '4711');
  assert.equal(fs.readFileSync(join(group, 'pids.max'), 'utf8'), LIMITS['pids.max']);
  assert.ok(!fs.existsSync(join(group, 'cgroup.subtree_control')), 'systemd could not take it away');
  const later = findParent({ ...deps, ...paths(`${DELEGATED}/cloudlet-self`) });
  assert.deepEqual(later, { folder: parent, problem: '', isFlat: true });
});

test('elsewhere nothing is made, and it is said why', () => {
  const refused = (deps: ReturnType<typeof paths>) => {
    const before = fs.readdirSync(root, { recursive: true });
    new Cgroups(GROUP, deps).assign(NAME, 4711, LIMITS);
    assert.deepEqual(fs.readdirSync(root, { recursive: true }), before);
    return new Cgroups(GROUP, deps).problem;
  };
  assert.match(refused(paths(DELEGATED)), /systemd did not delegate cgroups to Cloudlet/);
  assert.match(refused(paths('/')), /systemd did not delegate/, 'the root is the part of systemd');
  fs.rmdirSync(join(root, 'systemd'));
  assert.match(refused(paths('/docker/1', { systemd: false })), /belong to another program/);
  const few = paths(`${DELEGATED}/cloudlet-control`, { controllers: 'hugetlb memory' });
  assert.match(refused(few), /have no controller for cpu, pids$/);
  assert.match(refused({ ...few, mount: join(root, 'none') }), /no cgroup version 2/);
  assert.match(
    findParent({ ...few, self: join(root, 'none') }).problem,
    /cannot determine Cloudlet's own cgroup/,
  );
});

test('the unit in deploy/ gives us what we look for', () => {
  const unit = fs.readFileSync(new URL('../../../deploy/cloudlet.service', import.meta.url), 'utf8');
  assert.match(unit, /^Delegate=memory cpu pids$/m);
  assert.equal(/^DelegateSubgroup=(.*)$/m.exec(unit)?.[1], OWN_SUBGROUP);
  assert.match(unit, /^ExecStopPost=-\/bin\/sh .*\n.*"-memory -cpu -pids" >.*cgroup\.subtree_control/m);
  assert.match(unit, /^OOMPolicy=continue$/m, 'a process out of memory does not end the service');
  assert.match(unit, /^SystemCallFilter=.* seccomp( |$)/m, 'QEMU may lock itself in');
  assert.match(unit, /^UMask=0077$/m);
  assert.doesNotMatch(unit, /^(ProtectControlGroups|MemoryDenyWriteExecute|PrivateDevices)=/m);
});

test('without systemd the root is ours', () => {
  const deps = paths('/', { systemd: false });
  assert.deepEqual(findParent(deps), { folder: join(deps.mount, '/'), problem: '', isFlat: false });
});

test('a kernel keeps the limits', { skip: real.problem }, async () => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  try {
    real.assign(NAME, child.pid ?? 0, LIMITS);
    const own = /^0::(.*)$/m.exec(fs.readFileSync(`/proc/${child.pid}/cgroup`, 'utf8'))?.[1] ?? '';
    assert.ok(own.endsWith(`${GROUP}/${NAME}`), own);
    const folder = join('/sys/fs/cgroup', own);
    assert.equal(fs.readFileSync(join(folder, 'pids.max'), 'utf8').trim(), '129');
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
    const old = 'cloudlet-databases/cloudlet-cgroups-old';
    const left = join(folder, '../..', old);
    fs.mkdirSync(left, { recursive: true });
    fs.utimesSync(left, 0, 0);
    await removeEmptyGroups();
    assert.ok(!fs.existsSync(left), 'what a killed cloud left goes');
    const other = new Cgroups('cloudlet-databases');
    other.make('cloudlet-cgroups-new', LIMITS);
    await removeEmptyGroups();
    await assert.doesNotReject(async () => other.make('cloudlet-cgroups-new', LIMITS));
    await other.remove('cloudlet-cgroups-new');
    await real.remove(NAME);
    assert.ok(!fs.existsSync(folder));
  } finally {
    child.kill('SIGKILL');
  }
});
