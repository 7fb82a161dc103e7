import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noDevices, onHostWith } from '../../testing/kvm-hosts.ts';
import { testUidBase } from '../../testing/own-ground.ts';
import { noQemu } from '../../testing/qemu-fixture.ts';
import { type Accel, type Boot, judgeKvm } from './kvm.ts';

const good = (ms: number) => ({ status: 33, ms, words: '' });
const judged = (tcg: Boot, kvm: Boot, shared = false) => judgeKvm({ tcg, kvm }, '/dev/null', shared);
const KVM_GID = 700_123;

test('KVM is taken only when it boots, in under 2 s and in under four times the emulation', () => {
  assert.deepEqual(judged(good(160), good(100)), { accel: 'kvm', reason: '', fix: '' });
  assert.equal(judged(good(160), good(639)).accel, 'kvm');
  assert.match(judged(good(160), good(640)).reason, /takes 0\.64 s; emulated it takes 0\.16 s/);
  assert.equal(judged(good(1000), good(2000)).accel, 'tcg');
});

test('hanging, failing and not being openable are distinguished, each with its fix', () => {
  const judge = (kvm: Boot, shared?: boolean) => judged(good(160), kvm, shared);
  const hangs = judge({ status: null, ms: 2001, words: '' });
  assert.match(hangs.reason, /^KVM is available, but a test boot hangs 2\.00 s/);
  assert.match(hangs.fix, /nested virtualisation on its host/);
  const fails = judge({ status: 134, ms: 20, words: 'error: failed to set MSR 0x10a' });
  assert.equal(fails.reason, 'a test boot with KVM fails: error: failed to set MSR 0x10a');
  assert.ok(fails.fix);
  const denied = { status: 1, ms: 9, words: 'Could not access KVM kernel module: Permission denied' };
  const barred = judge(denied);
  assert.match(
    barred.reason,
    /^virtual machines may not open \/dev\/null: it belongs to user 0 and group 0, mode 666/,
  );
  assert.match(barred.fix, /chgrp kvm/);
  assert.match(judge(denied, true).fix, /usermod -aG kvm/);
  const absent = judge({ status: 1, ms: 9, words: 'Could not access KVM kernel module: No such device' });
  assert.match(absent.fix, /modprobe kvm_intel/);
  assert.match(
    judged({ status: 1, ms: 20, words: 'no' }, good(10)).reason,
    /the emulated test boot fails, too: no$/,
  );
});

const HOST = (name: string) => JSON.stringify(new URL(name, import.meta.url).href);
/** The result of the test boot, run as the user of a guest, and the QEMU used. */
const PROBE = `
  import { mkdtempSync, rmSync } from 'node:fs';
  import { AccelProbe } from ${HOST('./probe.ts')};
  import { QemuPrograms } from ${HOST('./program.ts')};
  import { systemClock } from ${HOST('../../platform/clock.ts')};
  const directory = mkdtempSync('/tmp/cloudlet-kvm-');
  const probe = new AccelProbe({ directory, clock: systemClock, uid: ${testUidBase()}, device: '/dev/kvm' });
  const program = await new QemuPrograms().system();
  probe.current(program);
  await probe.whenIdle();
  console.log(JSON.stringify(probe.current(program)));
  rmSync(directory, { recursive: true });`;
/** The ids of the process of a guest started with KVM. */
const IDS = `
  import { readFileSync } from 'node:fs';
  import { buildQemuFixture } from ${HOST('../../testing/qemu-fixture.ts')};
  import { spinningQemu } from ${HOST('../../testing/kvm-hosts.ts')};
  const fixture = buildQemuFixture();
  const qemu = spinningQemu();
  const opened = fixture.open({ accel: 'kvm', programDirectories: [qemu.folder] });
  const spec = fixture.newSpec();
  await opened.start(spec);
  const { pid } = JSON.parse(readFileSync(fixture.deps.vmsDirectory + '/' + spec.vmId + '/run.json', 'utf8'));
  const status = readFileSync('/proc/' + pid + '/status', 'utf8');
  const last = (name) => new RegExp('^' + name + ':(.*)$', 'm').exec(status)[1].trim().split('\\t').at(-1);
  console.log(JSON.stringify(['Uid', 'Gid', 'Groups'].map(last)));
  await opened.stop(spec.vmId, { graceMs: 0 });
  await opened.close();
  await fixture.remove();
  qemu.remove();`;

const asRoot = { skip: noQemu || noDevices };

test('where the device is of a group, as on Debian, guests have that group and no other', asRoot, () => {
  const node = { mode: '660', gid: KVM_GID };
  const [uid = '', gid, groups] = JSON.parse(onHostWith(node, IDS)) as string[];
  assert.ok(Number(uid) >= 660_000_000);
  assert.deepEqual([gid, groups], [String(KVM_GID), '']);
  const { reason } = JSON.parse(onHostWith(node, PROBE)) as Accel;
  // Whether it works depends on this host; it was opened.
  assert.doesNotMatch(reason, /may not open|emulated test boot fails/);
});

test('where only root may open it, or the group of root, no guest is of that group', asRoot, () => {
  for (const mode of ['600', '660']) {
    const node = { mode, gid: 0 };
    const [uid, gid, groups] = JSON.parse(onHostWith(node, IDS)) as string[];
    assert.deepEqual([gid, groups], [uid, ''], mode);
    const { accel, reason, fix } = JSON.parse(onHostWith(node, PROBE)) as Accel;
    assert.equal(accel, 'tcg');
    assert.equal(
      reason,
      `virtual machines may not open /dev/kvm: it belongs to user 0 and group 0, mode ${mode}`,
    );
    assert.match(fix, /^chgrp kvm \/dev\/kvm && chmod 660/);
  }
});

test('where all may open it, guests have the group of their own', asRoot, () => {
  const [uid, gid, groups] = JSON.parse(onHostWith({ mode: '666', gid: KVM_GID }, IDS)) as string[];
  assert.deepEqual([gid, groups], [uid, '']);
});
