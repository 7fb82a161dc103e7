import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeClock } from '../../../platform/clock.ts';
import { eventually } from '../../../testing/eventually.ts';
import { hostBootId, readStat } from '../../host-process/process-identity.ts';
import { GuestFolders } from './guest-folders.ts';
import type { GuestRun } from './guest-run.ts';
import { GuestRuns } from './guest-runs.ts';

const OLD = 'vm-01k0000000000000000000000a';
const KEPT = 'vm-01k0000000000000000000000b';

test('the end of a run is not reported any more once the next one is about to be made', async () => {
  const root = mkdtempSync(join(tmpdir(), 'cloudlet-runs-'));
  const child = spawn('/bin/sleep', ['600'], { stdio: 'ignore' });
  const { pid = 0 } = child;
  const gone: string[] = [];
  const runs = new GuestRuns({
    folders: new GuestFolders(root, null),
    clock: new FakeClock(),
    onGone: ({ vmId }) => void gone.push(vmId),
    onEnd: () => {},
  });
  try {
    const startTime = readStat(pid)?.startTime ?? 0;
    const identity = { pid, startTime, bootId: hostBootId(), uuid: '', uid: null };
    const watched: GuestRun[] = [OLD, KEPT].map((vmId) => runs.attach(vmId, identity));
    await Promise.all(watched.map((run) => run.watchPersistently()));
    runs.expect(OLD);
    child.kill('SIGKILL');
    await eventually(() => gone.includes(KEPT));
    assert.deepEqual(gone, [KEPT]);
  } finally {
    child.kill('SIGKILL');
    runs.close();
    rmSync(root, { recursive: true, force: true });
  }
});
