import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeClock } from '../../platform/clock.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import { identify, readStat } from '../host-process/process-identity.ts';
import { Admission, admitGuest, assertMemoryFor, memoryForGuests } from './admission.ts';
import { GuestFolders } from './guests/guest-folders.ts';
import { GuestRuns } from './guests/guest-runs.ts';

const MIB = 1024 * 1024;
const VM = 'vm-01hxn5c0000000000000000000';

test('what guests that just began have not touched yet is counted, for a while', () => {
  const root = mkdtempSync(join(tmpdir(), 'cloudlet-admission-'));
  try {
    const clock = new FakeClock();
    const none = () => undefined;
    const runs = new GuestRuns({ folders: new GuestFolders(root, null), clock, onGone: none, onEnd: none });
    assert.equal(runs.untouchedBytes(2 ** 40), 0);
    // This process stands in for a guest: it uses some memory, and far less than the share.
    const startTime = readStat(process.pid)?.startTime ?? 0;
    runs.attach(VM, { pid: process.pid, startTime, bootId: '', uuid: '', uid: null });
    const untouched = runs.untouchedBytes(2 ** 40);
    assert.ok(untouched < 2 ** 40 && untouched > 2 ** 40 - 2 ** 33, String(untouched));
    assert.equal(runs.untouchedBytes(1), 0, 'it has touched all of that');
    clock.advance(15_001);
    assert.equal(runs.untouchedBytes(2 ** 40), 0);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

test('a host without memory says so, and when to ask again', () => {
  const runs = { untouchedBytes: () => 0, live: () => [] };
  admitGuest(runs, 0);
  const isFull = (error: unknown) => isAppError(error, 'insufficient_capacity');
  assert.throws(() => admitGuest(runs, 1_000_000), isFull, 'so many are starting');
  assert.throws(() => admitGuest({ ...runs, untouchedBytes: () => 2 ** 50 }, 0), isFull);
});

test('what is kept for the host is a share of its memory', () => {
  const runs = { untouchedBytes: () => 0, live: () => [] };
  const memory = (total: number, available: number, isLimited = false) => ({
    totalBytes: total * MIB,
    availableBytes: available * MIB,
    isLimited,
  });
  admitGuest(runs, 0, memory(960, 376));
  const refusal = (...figures: Parameters<typeof memory>) => {
    try {
      admitGuest(runs, 0, memory(...figures));
    } catch (error) {
      assert.ok(error instanceof AppError);
      return `${error.message}; ${error.hint}`;
    }
    return assert.fail('it was admitted');
  };
  assert.match(
    refusal(960, 375),
    /375 MiB of 960 MiB are free, 376 MiB are needed; no machine is running: give /,
  );
  assert.match(refusal(960, 375, true), /raise the memory limit of its container or service/);
  assert.match(refusal(65_536, 767), /768 MiB are needed/, 'of a large host no more than 512 MiB are kept');
});

test('guests together have no more memory than the host has for them, times the overcommit', () => {
  const gib = (size: number) => ({ totalBytes: size * 1024 * MIB });
  assert.equal(memoryForGuests(1, gib(24)), 24 * 1024 - 512);
  assert.equal(memoryForGuests(1.5, gib(24)), 36 * 1024 - 768);
  assert.ok(memoryForGuests(1.5, { totalBytes: 960 * MIB }) > 1024, 'a small host runs the smallest type');
  const limit = { limitMb: 4096 };
  assertMemoryFor({ ...limit, takenMb: 3072, wantedMb: 1024 });
  const refusal = (takenMb: number, wantedMb: number) => {
    try {
      assertMemoryFor({ ...limit, takenMb, wantedMb });
    } catch (error) {
      assert.ok(isAppError(error, 'insufficient_capacity'));
      return `${error.message}; ${error.hint}`;
    }
    return assert.fail('it was admitted');
  };
  assert.match(refusal(0, 4097), /no memory left for a machine of 4097 MiB/);
  assert.match(
    refusal(3073, 1024),
    /other machines use 3073 MiB of the 4096 MiB .*; stop a machine, choose a smaller/,
  );
  assert.match(refusal(3073, 1024), /the operator of this cloud can give machines more memory$/);
});

test('what runs and what is being started count together, each once', async () => {
  const root = mkdtempSync(join(tmpdir(), 'cloudlet-admission-'));
  try {
    const none = () => undefined;
    const folders = new GuestFolders(root, null);
    const runs = new GuestRuns({ folders, clock: new FakeClock(), onGone: none, onEnd: none });
    const admission = new Admission(runs, 1.5);
    const half = Math.floor(admission.limitMb() / 2);
    const other = { vmId: 'vm-01hxn5c0000000000000000001', memoryMb: half };
    const third = { vmId: 'vm-01hxn5c0000000000000000002', memoryMb: half };
    const isFull = (error: unknown) => isAppError(error, 'insufficient_capacity');
    await folders.create({ vmId: VM, uuid: '', boot: 'disk', diskFormat: 'raw' }, async () => {});
    await admission.start({ vmId: VM, memoryMb: half }, async () => {
      const itself = identify(process.pid);
      assert.ok(itself);
      const run = runs.attach(VM, { ...itself, uuid: '', uid: null });
      runs.remember(run, { accel: 'tcg', accelReason: '', size: { vcpus: 1, memoryMb: half } });
      assert.equal(await admission.start(other, async () => 'launched'), 'launched');
    });
    await admission.start(other, async () => {
      await assert.rejects(
        admission.start(third, async () => {}),
        isFull,
        'one runs, one is starting',
      );
    });
    await admission.start(third, async () => {});
    for (const run of runs.live()) run.isStopping = true;
    await assert.rejects(
      admission.start({ ...third, memoryMb: half + 2 }, async () => {}),
      isFull,
      'one that is being stopped has its memory still',
    );
    runs.close();
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
