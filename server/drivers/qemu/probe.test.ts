import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../clock.ts';
import { hasQemu } from '../../testing/qemu-house.ts';
import { AccelProbe, judgeKvm } from './probe.ts';
import { newestMachine, QemuPrograms } from './program.ts';

const good = (ms: number) => ({ status: 33, ms });

test('KVM is taken only when it boots, in under 2 s and in under four times the emulation', () => {
  assert.deepEqual(judgeKvm(good(160), good(100)), { accel: 'kvm', reason: '' });
  assert.equal(judgeKvm(good(160), good(639)).accel, 'kvm');
  assert.match(judgeKvm(good(160), good(640)).reason, /takes 0\.64 s; emulated it takes 0\.16 s/);
  assert.equal(judgeKvm(good(1000), good(2000)).accel, 'tcg');
  assert.match(judgeKvm(good(160), { status: null, ms: 2001 }).reason, /hangs 2\.00 s/);
  assert.match(judgeKvm(good(160), { status: 1, ms: 20 }).reason, /fails/);
  assert.match(judgeKvm({ status: 1, ms: 20 }, good(10)).reason, /fails emulated/);
});

test('the newest versioned q35 is chosen, by number', () => {
  const help = 'q35  alias of pc-q35-10.0\npc-q35-9.2   x\npc-q35-10.0  x\npc-i440fx-11.0 x\npc-q35-2.4 x\n';
  assert.equal(newestMachine(help), 'pc-q35-10.0');
  assert.equal(newestMachine('none   empty machine\n'), undefined);
});

test('the probe boots for real, says what it found and remembers it', { skip: !hasQemu }, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-probe-'));
  try {
    const program = await new QemuPrograms().system();
    assert.ok(program);
    // A device that is there, so that KVM is tried; whether it works is up to this host.
    const deps = { directory, clock: systemClock, user: null, device: '/dev/null' };
    const probe = new AccelProbe(deps);
    assert.deepEqual(probe.current(program), { accel: 'tcg', reason: 'KVM is being tested' });
    await probe.settled();
    const found = probe.current(program);
    assert.ok(found.accel === 'kvm' || found.reason !== '');
    assert.doesNotMatch(found.reason, /emulated, too|could not/, 'the emulated boot works everywhere');
    assert.deepEqual(readdirSync(directory), ['accel-probe.json']);
    const kept = readFileSync(join(directory, 'accel-probe.json'), 'utf8');
    assert.equal(JSON.parse(kept).accel, found.accel);
    const again = new AccelProbe(deps);
    again.current(program);
    await again.settled();
    assert.deepEqual(again.current(program), found);
    const none = new AccelProbe({ ...deps, device: join(directory, 'kvm') });
    const updated = { ...program, version: '99.0' };
    none.current(updated);
    await none.settled();
    assert.deepEqual(none.current(updated), { accel: 'tcg', reason: 'this host offers no KVM' });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
