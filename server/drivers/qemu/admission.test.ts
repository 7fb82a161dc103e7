import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeClock } from '../../clock.ts';
import { isAppError } from '../../errors.ts';
import { admitGuest } from './admission.ts';
import { GuestFolders } from './guest-folders.ts';
import { GuestRuns } from './guest-runs.ts';
import { readStat } from './processes.ts';

const VM = 'vm-01hxn5c0000000000000000000';

test('what guests that just began have not touched yet is counted, for a while', () => {
  const root = mkdtempSync(join(tmpdir(), 'cloudlet-admission-'));
  try {
    const clock = new FakeClock();
    const none = () => undefined;
    const runs = new GuestRuns({ folders: new GuestFolders(root, null), clock, onGone: none, onEnd: none });
    assert.equal(runs.untouchedBytes(2 ** 40), 0);
    // This very process stands for a guest: it has some memory, and far less than the share.
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

test('a host without room says so, and when to ask again', () => {
  const runs = { untouchedBytes: () => 0 };
  admitGuest(runs, 0);
  const isFull = (error: unknown) => isAppError(error, 'insufficient_capacity');
  assert.throws(() => admitGuest(runs, 1_000_000), isFull, 'so many are starting');
  assert.throws(() => admitGuest({ untouchedBytes: () => 2 ** 50 }, 0), isFull);
});
