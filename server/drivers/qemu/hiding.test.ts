/** Guests that took over their own process and try to hide it. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { GuestEnd } from '../../compute/hypervisor.ts';
import { eventually } from '../../testing/eventually.ts';
import { noGuestUsers } from '../../testing/own-ground.ts';
import { buildQemuFixture, noQemu, type QemuFixture } from '../../testing/qemu-fixture.ts';
import { readStat, userOf } from '../host-process/process-identity.ts';
import type { GuestRecord, RunRecord } from './guests/guest-folders.ts';
import type { QemuHypervisor } from './qemu-hypervisor.ts';

const FIXTURE = new URL('../../testing/qemu-fixture.ts', import.meta.url).href;
/**
 * A system call of x86-64 in Perl, which every Debian has: something that a QEMU controlled by its guest
 * could do.
 */
const EXIT_THREAD = 'syscall(60, 0)';
const SEEM_DEAD =
  'use threads; my $me = $$; sub left { open my $f, "<", "/proc/$me/stat"; <$f> =~ /\\) Z/ } ' +
  `threads->create(sub { 1 until left(); print "here\\n"; sleep 600 }); ${EXIT_THREAD}; `;
const HELPERS = {
  'an ordinary one': '',
  'one that cannot be examined': 'syscall(157, 4, 0, 0, 0, 0); ',
  'one whose first thread has left, and so seems dead': SEEM_DEAD,
  'one that does not listen to signals': '$SIG{$_} = "IGNORE" for qw(TERM HUP INT); ',
} as const;

describe('a guest that hides', { skip: noQemu }, () => {
  let fixture: QemuFixture;
  let hypervisor: QemuHypervisor;
  const ends: GuestEnd[] = [];
  const helpers: ChildProcess[] = [];
  const asRoot = { skip: noGuestUsers };
  before(() => {
    fixture = buildQemuFixture();
    hypervisor = fixture.open();
    hypervisor.onEnd((end) => ends.push(end));
  });
  after(async () => {
    for (const helper of helpers) helper.kill('SIGKILL');
    for (const { vmId } of await hypervisor.list()) await hypervisor.stop(vmId, { graceMs: 0 });
    await hypervisor.close();
    await fixture.remove();
  });
  const read = (vmId: string, name: string) =>
    JSON.parse(fs.readFileSync(join(fixture.deps.vmsDirectory, vmId, name), 'utf8'));
  const pidOf = (vmId: string) => (read(vmId, 'run.json') as RunRecord).pid;
  const isThere = (pid: number) => readStat(pid)?.isDead === false;

  /** A process of the guest's own user, which runs until it is killed. */
  async function helperOf(vmId: string, how = ''): Promise<ChildProcess> {
    const uid = (read(vmId, 'spec.json') as GuestRecord).uid ?? -1;
    const script = `$| = 1; ${how}print "here\\n"; sleep 600;`;
    const child = spawn('/usr/bin/perl', ['-e', script], { uid, gid: uid, cwd: '/' });
    helpers.push(child);
    await once(child.stdout, 'data');
    assert.ok(isThere(child.pid ?? 0));
    assert.equal(userOf(child.pid ?? 0), uid);
    return child;
  }

  const isGone = (child: ChildProcess) => eventually(() => child.signalCode === 'SIGKILL');

  /** A guest can do this to a process that it took over: the command line is in the process's own memory. */
  function overwriteCommandLine(pid: number): void {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [start, end] = [Number(fields[45]), Number(fields[46])];
    const bytes = Buffer.alloc(end - start);
    bytes.write('nobody');
    const memory = fs.openSync(`/proc/${pid}/mem`, 'r+');
    try {
      fs.writeSync(memory, bytes, 0, bytes.length, start);
    } finally {
      fs.closeSync(memory);
    }
    assert.doesNotMatch(fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1'), /qemu|uuid/);
  }

  test('behind another command line: it runs, is not doubled, is adopted, and stops', asRoot, async () => {
    const spec = fixture.newSpec();
    const { handle } = await hypervisor.start(spec);
    const pid = pidOf(spec.vmId);
    overwriteCommandLine(pid);
    assert.equal((await hypervisor.inspect(spec.vmId)).running, true);
    assert.equal((await hypervisor.start(spec)).handle, handle);
    assert.equal(pidOf(spec.vmId), pid);
    assert.notEqual(await hypervisor.sample(spec.vmId), null);
    await hypervisor.close();
    hypervisor = fixture.open();
    hypervisor.onEnd((end) => ends.push(end));
    const facts = await hypervisor.list();
    assert.deepEqual(
      facts.map((fact) => [fact.running, fact.handle]),
      [[true, handle]],
    );
    await hypervisor.adopt(facts);
    await assert.rejects(hypervisor.discard(spec.vmId), /runs cannot be removed/);
    assert.equal(await hypervisor.stop(spec.vmId, { graceMs: 0 }), 'quit');
    assert.equal(isThere(pid), false);
    assert.deepEqual(ends, []);
    await hypervisor.discard(spec.vmId);
  });

  test('behind another command line, and deaf: it is killed', asRoot, async () => {
    const spec = fixture.newSpec();
    await hypervisor.start(spec);
    const pid = pidOf(spec.vmId);
    overwriteCommandLine(pid);
    process.kill(pid, 'SIGSTOP');
    assert.equal(await hypervisor.stop(spec.vmId, { graceMs: 0 }), 'kill');
    assert.equal(isThere(pid), false);
  });

  for (const [name, how] of Object.entries(HELPERS)) {
    test(`in a process beside its own, ${name}: a stop ends it, running or not`, asRoot, async () => {
      const spec = fixture.newSpec();
      const other = fixture.newSpec();
      await hypervisor.prepare(other);
      const stranger = await helperOf(other.vmId, how);
      await hypervisor.start(spec);
      const helper = await helperOf(spec.vmId, how);
      await hypervisor.stop(spec.vmId, { graceMs: 0 });
      assert.equal(isThere(helper.pid ?? 0), false);
      const late = await helperOf(spec.vmId, how);
      assert.equal(await hypervisor.stop(spec.vmId, { graceMs: 0 }), 'was_stopped');
      assert.equal(isThere(late.pid ?? 0), false);
      assert.ok(isThere(stranger.pid ?? 0), 'of another guest');
      await hypervisor.discard(other.vmId);
      assert.equal(isThere(stranger.pid ?? 0), false);
    });
  }

  test('in a process beside its own: its end and the next start end it as well', asRoot, async () => {
    const spec = fixture.newSpec();
    await hypervisor.start(spec);
    const first = await helperOf(spec.vmId);
    process.kill(pidOf(spec.vmId), 'SIGKILL');
    await eventually(() => ends.find(({ vmId }) => vmId === spec.vmId));
    await isGone(first);
    const second = await helperOf(spec.vmId);
    await hypervisor.start(spec);
    assert.equal(isThere(second.pid ?? 0), false);
    assert.ok(isThere(pidOf(spec.vmId)));
    await hypervisor.stop(spec.vmId, { graceMs: 0 });
  });

  test('with a descriptor of whoever started us: it has none', async () => {
    // Node itself only prevents the inheritance of descriptors that follow without a gap.
    const script = `
      import { readdirSync, readFileSync } from 'node:fs';
      import { buildQemuFixture } from ${JSON.stringify(FIXTURE)};
      const fixture = buildQemuFixture();
      const opened = fixture.open();
      const spec = fixture.newSpec();
      await opened.start(spec);
      const run = JSON.parse(readFileSync(fixture.deps.vmsDirectory + '/' + spec.vmId + '/run.json', 'utf8'));
      const [parent] = readFileSync('/proc/' + run.pid + '/stat', 'latin1').split(') ')[1].split(' ').slice(1);
      console.log(JSON.stringify(['self', run.pid, parent].map((pid) => readdirSync('/proc/' + pid + '/fd'))));
      await opened.stop(spec.vmId, { graceMs: 0 });
      await opened.close();
      await fixture.remove();`;
    const words = ['-c', 'exec 90</dev/null; exec "$@"', 'bash', process.execPath, '--input-type=module'];
    const child = spawn('/bin/bash', [...words, '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(child.stdout, 'data');
    await once(child, 'exit');
    const [own, guest, shell] = JSON.parse(String(line)) as [string[], string[], string[]];
    assert.ok(own.includes('90'));
    // 7: the lock of the guest's folder.
    assert.deepEqual(shell, ['0', '1', '2', '7']);
    assert.ok(!guest.includes('90'), guest.join());
  });

  test('a start right after the end of the last run is not ended with it', async () => {
    const spec = fixture.newSpec();
    await hypervisor.start(spec);
    for (let times = 0; times < 5; times++) {
      process.kill(pidOf(spec.vmId), 'SIGKILL');
      await eventually(() => !isThere(pidOf(spec.vmId)));
      const { handle } = await hypervisor.start(spec);
      const fact = await hypervisor.inspect(spec.vmId);
      assert.deepEqual([fact.running, fact.handle], [true, handle]);
    }
    await hypervisor.stop(spec.vmId, { graceMs: 0 });
  });
});
