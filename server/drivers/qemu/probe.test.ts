import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../platform/clock.ts';
import { eventually } from '../../testing/eventually.ts';
import { noUsers, testUidBase } from '../../testing/own-ground.ts';
import { noQemu } from '../../testing/qemu-fixture.ts';
import { readStat } from '../host-process/process-identity.ts';
import { AccelProbe, readProbe } from './probe.ts';
import { QemuPrograms } from './program.ts';

/** Runs a probe whose QEMU, the given program, does not end. */
const HANGING = `
  const [probe, clock, directory, path] = process.argv.slice(1);
  const { AccelProbe } = await import(probe);
  const { systemClock } = await import(clock);
  const uid = ${noUsers === null ? testUidBase() : null};
  new AccelProbe({ directory, clock: systemClock, uid, device: '/dev/null' })
    .current({ path, version: '1', machine: 'none', machines: [] });`;

test('a test boot ends with the Cloudlet that began it, however that ends', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-probe-'));
  const program = join(directory, 'qemu');
  writeFileSync(program, `#!/bin/sh\nexec sleep 61\n`, { mode: 0o755 });
  chmodSync(directory, 0o755);
  const urls = [
    new URL('./probe.ts', import.meta.url).href,
    new URL('../../platform/clock.ts', import.meta.url).href,
  ];
  const parent = spawn(
    process.execPath,
    ['--input-type=module', '-e', HANGING, ...urls, directory, program],
    {
      stdio: 'ignore',
    },
  );
  let boot = 0;
  try {
    boot = await eventually(() =>
      childrenOf(parent.pid ?? 0).find((pid) => commandOf(pid).includes('sleep')),
    );
    const gone = once(parent, 'exit');
    parent.kill('SIGKILL');
    await gone;
    await eventually(() => readStat(boot)?.isDead ?? true);
  } finally {
    parent.kill('SIGKILL');
    if (commandOf(boot).includes('sleep')) process.kill(boot, 'SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  }
});

function commandOf(pid: number): string {
  const path = `/proc/${pid}/cmdline`;
  return existsSync(path) ? readFileSync(path, 'latin1') : '';
}

function childrenOf(pid: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  return existsSync(path) ? readFileSync(path, 'latin1').trim().split(' ').map(Number) : [];
}

test('the probe boots for real, says what it found and remembers it', { skip: noQemu }, async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-probe-'));
  const before = process.env.TMPDIR;
  t.after(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  });
  // It may not work at all: none of the probe's files are there.
  process.env.TMPDIR = join(directory, 'nowhere');
  try {
    const program = await new QemuPrograms().system();
    assert.ok(program);
    // An existing device, so that KVM is tried; whether it works depends on this host.
    const deps = { directory, clock: systemClock, uid: null, device: '/dev/null' };
    const probe = new AccelProbe(deps);
    assert.deepEqual(probe.current(program), { accel: 'tcg', reason: 'KVM is being tested', fix: '' });
    await probe.whenIdle();
    const found = probe.current(program);
    assert.ok(found.accel === 'kvm' || found.reason !== '');
    assert.doesNotMatch(
      found.reason,
      /emulated test boot fails|could not/,
      'the emulated boot works everywhere',
    );
    assert.deepEqual(readdirSync(directory), ['accel-probe.json']);
    const kept = readFileSync(join(directory, 'accel-probe.json'), 'utf8');
    assert.equal(JSON.parse(kept).accel, found.accel);
    assert.equal(readProbe(directory, program, '/dev/null')?.reason, found.reason);
    for (const [other, device] of [
      [{ ...program, version: '0' }, '/dev/null'],
      [program, '/dev/zero'],
    ] as const)
      assert.equal(readProbe(directory, other, device), null, device);
    const again = new AccelProbe(deps);
    again.current(program);
    await again.whenIdle();
    assert.deepEqual(again.current(program), found);
    const none = new AccelProbe({ ...deps, device: join(directory, 'kvm') });
    const updated = { ...program, version: '99.0' };
    none.current(updated);
    await none.whenIdle();
    assert.equal(none.current(updated).reason, 'this host offers no KVM');
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
