import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GuestEnd, GuestSpec } from '../../compute/hypervisor.ts';
import { isAppError } from '../../platform/errors.ts';
import { eventually } from '../../testing/eventually.ts';
import { testHypervisor } from '../../testing/hypervisor.conformance.ts';
import { spinningQemu } from '../../testing/kvm-hosts.ts';
import { buildQemuFixture, noQemu, type QemuFixture, testSpec } from '../../testing/qemu-fixture.ts';
import { identify, isAlive, RUN, readProc, signalProcess, userOf } from '../host-process/process-identity.ts';
import { FILES } from './arguments.ts';
import type { RunRecord } from './guests/guest-folders.ts';
import { handleOf, identityOf } from './guests/guest-run.ts';
import { TINY_FOLDER, tinyIn, whyNoTinyImage } from './images/tiny-image.ts';
import type { QemuHypervisor } from './qemu-hypervisor.ts';

const noTiny = whyNoTinyImage(tinyIn(TINY_FOLDER))?.problem ?? false;

if (!noQemu) testHypervisor('QemuHypervisor', async () => buildQemuFixture());

describe('QEMU guests', { skip: noQemu }, () => {
  let fixture: QemuFixture;
  let hypervisor: QemuHypervisor;
  const ends: GuestEnd[] = [];
  before(() => {
    fixture = buildQemuFixture();
    hypervisor = fixture.open();
    hypervisor.onEnd((end) => ends.push(end));
  });
  after(async () => {
    for (const { vmId } of await hypervisor.list()) await hypervisor.stop(vmId, { graceMs: 0 });
    await hypervisor.close();
    await fixture.remove();
  });
  const file = (vmId: string, name: string) => join(fixture.deps.vmsDirectory, vmId, name);
  const runOf = (vmId: string) => JSON.parse(fs.readFileSync(file(vmId, 'run.json'), 'utf8')) as RunRecord;
  const processesOf = ({ uuid }: GuestSpec) => {
    const pids = fs.readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
    return pids.map(Number).filter((pid) => {
      const words = (readProc(`${pid}/cmdline`) ?? '').split('\0');
      return words.includes(uuid) && /qemu/.test(words[0] ?? '');
    });
  };

  test('a killed process is reported as crashed, with the signal', async () => {
    const spec = fixture.newSpec();
    const { handle } = await hypervisor.start(spec);
    process.kill(runOf(spec.vmId).pid, 'SIGKILL');
    const end = await eventually(() => ends.find(({ vmId }) => vmId === spec.vmId));
    assert.equal(end.cause, 'crashed');
    assert.equal(end.handle, handle);
    assert.match(end.message, /SIGKILL/);
    assert.notEqual((await hypervisor.start(spec)).handle, handle);
    await hypervisor.stop(spec.vmId, { graceMs: 0 });
  });

  test('a process that is killed while nobody watches: by which signal, and when', async () => {
    const spec = fixture.newSpec();
    for (const [signal, message] of [
      ['SIGKILL', /^the process was killed by SIGKILL$/],
      ['SIGTERM', /^the process was ended by SIGTERM$/],
    ] as const) {
      const first = fixture.open();
      const { handle } = await first.start(spec);
      await first.close();
      // File times lag behind Date.now(): by a tick, and by more on a busy host.
      const mark = join(fixture.deps.vmsDirectory, '..', 'mark');
      fs.writeFileSync(mark, '');
      const began = Math.floor(fs.statSync(mark).mtimeMs);
      process.kill(runOf(spec.vmId).pid, signal);
      const second = fixture.open();
      const end = await eventually(async () => (await second.inspect(spec.vmId)).end);
      assert.deepEqual([end.cause, end.handle], ['crashed', handle]);
      assert.match(end.message, message);
      assert.ok((end.at ?? 0) >= began && (end.at ?? 0) <= Date.now());
      await second.close();
    }
  });

  test('after a boot of the host the last run went down with it; a note of another run is not believed', async () => {
    const spec = fixture.newSpec();
    await hypervisor.start(spec);
    await hypervisor.stop(spec.vmId, { graceMs: 0 });
    const written = runOf(spec.vmId);
    const note = fs.readFileSync(file(spec.vmId, 'ended'), 'latin1');
    assert.equal(note, `${written.pid} 0\n`);
    for (const text of [`${written.pid + 1} 0\n`, '', `${written.pid} 0`]) {
      fs.writeFileSync(file(spec.vmId, 'ended'), text);
      assert.equal((await hypervisor.inspect(spec.vmId)).end, null, JSON.stringify(text));
    }
    const handle = `${written.pid}.1.another-boot.${spec.uuid}`;
    fs.writeFileSync(file(spec.vmId, 'run.json'), JSON.stringify({ ...written, handle }));
    const { end } = await hypervisor.inspect(spec.vmId);
    assert.deepEqual([end?.cause, end?.handle, end?.at], ['host_restarted', handle, null]);
  });

  test('a start waits for the built-in image while the host builds it', { skip: noTiny }, async () => {
    const folder = fs.mkdtempSync(join(fixture.deps.vmsDirectory, '..', 'tiny-'));
    const report = join(folder, 'guest-image.json');
    fs.writeFileSync(report, JSON.stringify({ pid: process.pid, percent: 7, step: 'fetching packages' }));
    const tiny = { ...tinyIn(folder), progress: folder };
    const waiting = fixture.open({ tiny });
    try {
      const spec = testSpec('tiny');
      let hasStarted = false;
      const started = waiting.start(spec).then((guest) => {
        hasStarted = true;
        return guest;
      });
      // The host is looked at twice a second.
      await sleep(1200);
      assert.deepEqual([hasStarted, processesOf(spec)], [false, []]);
      for (const name of ['kernel', 'initrd'] as const)
        fs.copyFileSync(tinyIn(TINY_FOLDER)[name], tiny[name]);
      fs.rmSync(report);
      assert.notEqual((await started).handle, '');
      assert.equal(processesOf(spec).length, 1);
      await waiting.stop(spec.vmId, { graceMs: 0 });

      // The set-up has given up, and says why.
      for (const name of ['kernel', 'initrd'] as const) fs.rmSync(tiny[name]);
      fs.writeFileSync(
        join(folder, 'problem.json'),
        JSON.stringify({ reason: 'no network', fix: 'connect' }),
      );
      await assert.rejects(waiting.start(testSpec('tiny')), {
        code: 'engine_unavailable',
        message: /no network/,
      });
    } finally {
      await waiting.close();
    }
  });

  test('the process has no powers, its own user, and goes first when memory runs out', async () => {
    const spec = fixture.newSpec();
    await hypervisor.start(spec);
    const { pid } = runOf(spec.vmId);
    const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
    const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(status)?.[1]?.trim();
    assert.equal(field('NoNewPrivs'), '1');
    assert.equal(field('Seccomp'), '2');
    assert.equal(fs.readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8').trim(), '500');
    assert.equal(fs.readFileSync(`/proc/${pid}/environ`, 'latin1').replaceAll('\0', ''), 'LANG=C');
    assert.equal(fs.statSync(file(spec.vmId, '')).mode & 0o777, 0o700);
    if (fixture.deps.noUsers === null) {
      assert.equal(field('CapEff'), '0000000000000000');
      assert.equal(field('Groups'), '');
      const uid = Number(field('Uid')?.split('\t')[0]);
      assert.ok(uid >= fixture.deps.uidBase);
      assert.equal(fs.statSync(file(spec.vmId, 'guest')).uid, uid);
      assert.equal(fs.statSync(file(spec.vmId, 'spec.json')).uid, 0);
      const other = fixture.newSpec();
      await hypervisor.prepare(other);
      assert.notEqual(fs.statSync(file(other.vmId, 'guest')).uid, uid);
    }
    await hypervisor.stop(spec.vmId, { graceMs: 0 });
  });

  test('a guest that ran before and has no disk here is not given an empty one', async () => {
    const spec = { ...fixture.newSpec(), hasRun: true };
    await assert.rejects(hypervisor.start(spec), (error) => isAppError(error, 'disk_missing'));
    assert.ok(!fs.existsSync(file(spec.vmId, '')));
    const disk = file(spec.vmId, 'guest/disk.qcow2');
    await hypervisor.start({ ...spec, hasRun: false });
    await hypervisor.stop(spec.vmId, { graceMs: 0 });
    fs.renameSync(disk, `${disk}.away`);
    await assert.rejects(hypervisor.start(spec), (error) => isAppError(error, 'disk_missing'));
    assert.ok(!fs.existsSync(disk));
    fs.renameSync(`${disk}.away`, disk);
    await hypervisor.start(spec);
    await hypervisor.stop(spec.vmId, { graceMs: 0 });
  });

  test('where another node has the guests none is touched', async () => {
    const spec = fixture.newSpec();
    await hypervisor.start(spec);
    const front = fixture.open({ isElsewhere: true });
    const other = fixture.newSpec();
    for (const work of [
      () => front.prepare(other),
      () => front.start(other),
      () => front.stop(spec.vmId, { graceMs: 0 }),
      () => front.discard(spec.vmId),
      () => front.stageImage('img-x'),
    ]) {
      await assert.rejects(work, (error) => isAppError(error, 'host_unreachable'));
    }
    await front.close();
    assert.ok(!fs.existsSync(file(other.vmId, '')));
    assert.equal(processesOf(spec).length, 1);
    await hypervisor.stop(spec.vmId, { graceMs: 0 });
  });

  test('two starts at once give one process', async () => {
    const spec = fixture.newSpec();
    await Promise.all([hypervisor.start(spec), hypervisor.start(spec), hypervisor.start(spec)]);
    assert.equal(processesOf(spec).length, 1);
    await hypervisor.stop(spec.vmId, { graceMs: 0 });
    assert.equal(processesOf(spec).length, 0);
  });

  test('a process that was never written down is found and not doubled', async () => {
    const spec = fixture.newSpec();
    await hypervisor.start(spec);
    const [pid] = processesOf(spec);
    fs.rmSync(file(spec.vmId, 'run.json'));
    const second = fixture.open();
    assert.equal((await second.inspect(spec.vmId)).running, true);
    await second.close();
    const written = fs.readFileSync(file(spec.vmId, RUN), 'latin1');
    fs.writeFileSync(file(spec.vmId, RUN), written.replace(/ \d+ /, ` ${process.pid} `));
    const other = fixture.open();
    assert.equal((await other.inspect(spec.vmId)).running, false, 'a process that began at another time');
    await other.close();
    fs.writeFileSync(file(spec.vmId, RUN), written);
    // The sockets serve one caller at a time: the previous one has disconnected, as after a kill.
    await hypervisor.close();
    const third = fixture.open();
    await third.start(spec);
    assert.deepEqual(processesOf(spec), [pid]);
    await third.stop(spec.vmId, { graceMs: 0 });
    await third.close();
    hypervisor = fixture.open();
    hypervisor.onEnd((end) => ends.push(end));
  });

  test('a process that took over the number is never signalled', async () => {
    const spec = fixture.newSpec();
    await hypervisor.start(spec);
    const written = runOf(spec.vmId);
    await hypervisor.stop(spec.vmId, { graceMs: 0 });
    const child = spawn('/bin/sleep', ['60'], { stdio: 'ignore' });
    const pid = child.pid ?? 0;
    try {
      const handle = written.handle.replace(/^\d+/, String(pid));
      fs.writeFileSync(file(spec.vmId, 'run.json'), JSON.stringify({ ...written, pid, handle }));
      assert.equal((await hypervisor.inspect(spec.vmId)).running, false);
      assert.equal(await hypervisor.stop(spec.vmId, { graceMs: 0 }), 'was_stopped');
      assert.equal(signalProcess(identityOf(handle, null), 'SIGKILL'), false);
      assert.equal(child.exitCode ?? child.signalCode, null);
    } finally {
      child.kill('SIGKILL');
    }
  });

  test('of a process everything must fit: number, time, boot and user', async () => {
    const spec = fixture.newSpec();
    await hypervisor.start(spec);
    const { pid, handle } = runOf(spec.vmId);
    const identity = identityOf(handle, userOf(pid));
    assert.ok(isAlive(identity));
    assert.equal(handleOf(identity), handle);
    assert.deepEqual(identity, { ...identify(pid), uuid: spec.uuid, uid: userOf(pid) });
    for (const wrong of [{ startTime: 1 }, { bootId: 'other' }, { uid: 12_345 }]) {
      assert.equal(isAlive({ ...identity, ...wrong }), false);
      assert.equal(signalProcess({ ...identity, ...wrong }, 'SIGKILL'), false);
    }
    await hypervisor.stop(spec.vmId, { graceMs: 0 });
  });

  test('without QEMU the built-in guest is prepared, and start says what to install', async () => {
    const bare = fixture.open({ programDirectories: [] });
    const spec = testSpec('tiny');
    await bare.prepare(spec);
    assert.equal(fs.statSync(file(spec.vmId, `guest/${FILES.rawDisk}`)).size, 30 * 1024 ** 3);
    const other = fixture.newSpec();
    await bare.prepare(other);
    assert.ok(!fs.existsSync(file(other.vmId, '')));
    await assert.rejects(bare.start(spec), (error) => isAppError(error, 'engine_unavailable'));
    const { isUsable, fix } = await bare.readiness();
    assert.deepEqual([isUsable, /apt-get install qemu-system-x86/.test(fix)], [false, true]);
    await bare.discard(spec.vmId);
    await bare.close();
  });

  test('a guest stays the machine it was made as; a forgotten one becomes the newest', async () => {
    const spec = fixture.newSpec();
    const notices: string[] = [];
    const recordPath = file(spec.vmId, 'spec.json');
    const record = () => JSON.parse(fs.readFileSync(recordPath, 'utf8'));
    const startAs = async (machine: string | undefined) => {
      fs.writeFileSync(recordPath, JSON.stringify({ ...record(), machine }));
      const opened = fixture.open({ warn: (vmId, text) => void (vmId === spec.vmId && notices.push(text)) });
      await opened.start(spec);
      const words = fs.readFileSync(`/proc/${runOf(spec.vmId).pid}/cmdline`, 'latin1').split('\0');
      await opened.stop(spec.vmId, { graceMs: 0 });
      await opened.close();
      return words[words.indexOf('-machine') + 1]?.split(',')[0];
    };
    await hypervisor.prepare(spec);
    const newest = record().machine;
    assert.match(newest, /^pc-q35-\d/);
    assert.equal(await startAs('pc-q35-6.0'), 'pc-q35-6.0');
    assert.equal(record().machine, 'pc-q35-6.0');
    assert.equal(await startAs(undefined), newest, 'a record of an older Cloudlet');
    assert.deepEqual([record().machine, notices], [newest, []]);
    assert.equal(await startAs('pc-q35-99.9'), newest);
    assert.match(notices.join(), /does not support pc-q35-99\.9; the machine now uses pc-q35-/);
  });

  test('a guest that cannot start leaves no process, and says why without a path', async () => {
    const spec = fixture.newSpec();
    await hypervisor.prepare(spec);
    fs.writeFileSync(file(spec.vmId, `guest/${FILES.qcow2Disk}`), 'no disk');
    await assert.rejects(hypervisor.start(spec), (error: Error) => {
      assert.ok(isAppError(error, 'internal_error'), String(error));
      assert.match(error.message, /not in qcow2 format/);
      assert.ok(!error.message.includes('/'), error.message);
      return true;
    });
    assert.deepEqual(processesOf(spec), []);
    assert.ok(ends.every(({ vmId }) => vmId !== spec.vmId));
    await hypervisor.discard(spec.vmId);
  });

  test('a reader that leaves in the middle of a disk leaves no open file, and closes no other', async () => {
    const spec = fixture.newSpec();
    const { vmId, image } = spec;
    await hypervisor.prepare(spec);
    const base = join(fixture.deps.imagesDirectory, `${image.imageId}.qcow2`);
    fs.writeFileSync(base, Buffer.alloc(4 * 2 ** 20, 1));
    const { signal } = new AbortController();
    for (const { open } of hypervisor.copies.disksOf({ vmId, imageId: image.imageId }, signal)) {
      for await (const piece of (await open()) ?? []) if (piece.length > 0) break;
      // It has the number of the file that was just closed.
      const next = fs.openSync(import.meta.filename, 'r');
      await sleep(100);
      assert.equal(fs.fstatSync(next).ino, fs.statSync(import.meta.filename).ino);
      fs.closeSync(next);
    }
    const links = fs.readdirSync('/proc/self/fd').map((name) => {
      const path = `/proc/self/fd/${name}`;
      return fs.existsSync(path) ? fs.readlinkSync(path) : '';
    });
    assert.deepEqual(
      links.filter((path) => path === base || path.includes(vmId)),
      [],
    );
    await hypervisor.discard(vmId);
  });

  // Both are long, and neither affects the other.
  describe('that do nothing', { concurrency: true }, () => {
    test('a process that hangs is ended by force', async () => {
      const spec = fixture.newSpec();
      await hypervisor.start(spec);
      process.kill(runOf(spec.vmId).pid, 'SIGSTOP');
      assert.equal(await hypervisor.stop(spec.vmId, { graceMs: 3000 }), 'kill');
      assert.deepEqual(processesOf(spec), []);
    });

    test('a guest that does nothing with KVM is started again without it', async () => {
      const spec = fixture.newSpec();
      const notices: string[] = [];
      const qemu = spinningQemu();
      const forced = fixture.open({
        accel: 'kvm',
        programDirectories: [qemu.folder],
        firstSign: { withinCpuMs: 500, withinMs: 10_000 },
        warn: (_vmId, text) => void notices.push(text),
      });
      const ended: GuestEnd[] = [];
      forced.onEnd((end) => ended.push(end));
      const first = await forced.start(spec);
      assert.deepEqual([first.accel, first.accelReason], ['kvm', '']);
      await eventually(async () => (await forced.consoleLog(spec.vmId, 100)).length > 0);
      const now = await forced.start(spec);
      assert.notEqual(now.handle, first.handle);
      assert.equal(now.accel, 'tcg');
      assert.match(now.accelReason, /this guest did not start with it/);
      assert.ok(notices.includes(now.accelReason));
      assert.equal(processesOf(spec).length, 1);
      assert.deepEqual(ended, [], 'that run is no end of the guest');
      await forced.stop(spec.vmId, { graceMs: 0 });
      await forced.close();
      qemu.remove();
    });
  });
});
