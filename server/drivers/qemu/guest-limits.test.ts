import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { noQemu } from '../../testing/qemu-fixture.ts';
import { limitsOf } from './guests/guest-launcher.ts';

test('a guest may take its memory and what QEMU needs, its processors, and so many threads', () => {
  assert.deepEqual(limitsOf({ vcpus: 2, memoryMb: 1024 }), {
    'memory.max': String((1024 + 512 + 16) * 2 ** 20),
    'memory.oom.group': '1',
    'cpu.max': '225000 100000',
    'pids.max': '130',
  });
});

const HERE = (name: string) => JSON.stringify(new URL(name, import.meta.url).href);
/** Plain files in place of the kernel's on a host with control groups of version 2. */
const HOST = `set -e; mount -t tmpfs none /sys/fs/cgroup; mount -t tmpfs none /run
echo cpu memory pids >/sys/fs/cgroup/cgroup.controllers
exec "$@"`;
/** Prints the process of a guest, and the one in its group after another Cloudlet adopted it. */
const ADOPT = `
  import { readFileSync, rmSync } from 'node:fs';
  import { buildQemuFixture } from ${HERE('../../testing/qemu-fixture.ts')};
  const fixture = buildQemuFixture();
  const first = fixture.open();
  const spec = fixture.newSpec();
  const { handle } = await first.start(spec);
  await first.close();
  const group = '/sys/fs/cgroup/cloudlet-machines/' + spec.vmId;
  rmSync(group, { recursive: true });
  const second = fixture.open();
  await second.adopt(await second.list());
  console.log(JSON.stringify([handle.split('.')[0], ...['cgroup.procs', 'pids.max'].map((name) =>
    readFileSync(group + '/' + name, 'utf8'))]));
  await second.stop(spec.vmId, { graceMs: 0 });
  await second.close();
  await fixture.remove();`;

const own = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
const isAble =
  own === '/' && spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'x', '/run']).status === 0;

test('a guest that is adopted gets its limits again', {
  skip: noQemu || (isAble ? false : 'needs mount namespaces, and to be in the root of the control groups'),
}, () => {
  const node = [process.execPath, '--input-type=module', '-e', ADOPT];
  const words = ['--mount', '--propagation', 'private', 'sh', '-c', HOST, 'sh', ...node];
  const { stdout, stderr } = spawnSync('unshare', words, { encoding: 'utf8' });
  assert.ok(stdout, stderr);
  const [pid, placed, tasks] = JSON.parse(stdout) as string[];
  assert.deepEqual([placed, tasks], [pid, '129']);
});
