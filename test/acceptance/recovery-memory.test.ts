/** A recovery point and a restore need as much memory for large files as for small ones. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { newDatabase, run } from './databases-kit.ts';
import { LosableCloud, POINTS, POST } from './recovery-kit.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/cloudlet', import.meta.url));
const MIB = 2 ** 20;
const LARGE_MIB = 256;
/** The data in transit at a time, several times over; less than any of the files. */
const MOST_MIB = 128;

let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start();
});
after(() => lost.end());

/** The peak memory of a process so far, MiB; undefined when it has ended. */
function peakOf(pid: number): number | undefined {
  try {
    const kb = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kb === undefined ? undefined : Number(kb) / 1024;
  } catch {
    return undefined;
  }
}

/** Peak memory of a newly started cloud, after it has created and verified a point. */
async function peakOfPoint(): Promise<number> {
  await lost.startAgain();
  const { point_id: id, state } = await lost.point();
  assert.equal(state, 'complete');
  assert.equal((await lost.admin.expect(200, `${POINTS}/${id}/verify?wait=300`, POST)).state, 'verified');
  return peakOf(lost.cloud.pid) ?? 0;
}

/** Peak memory of the command that restores the newest point. */
async function peakOfRestore(to: string): Promise<number> {
  const args = ['recovery', 'restore', '--from', lost.target, '--to', join(lost.root, to)];
  const child = spawn(LAUNCHER, [...args, '--key-file', lost.keyFile], { stdio: 'ignore' });
  const ended = once(child, 'exit');
  let peak = 0;
  for (let now: number | undefined = 0; child.exitCode === null && now !== undefined; await sleep(10)) {
    now = peakOf(child.pid as number);
    peak = Math.max(peak, now ?? 0);
  }
  assert.deepEqual(await ended, [0, null]);
  return peak;
}

test('a point, its verification and its restore', async (t) => {
  const { user } = lost;
  await user.expect(201, '/api/buckets', { json: { name: 'files' } });
  await user.upload('files', 'small', randomBytes(MIB));
  const path = await newDatabase(user, 'CREATE TABLE t (x)', 'INSERT INTO t VALUES (1)');
  const point = await peakOfPoint();
  await lost.keepKey();
  const restore = await peakOfRestore('small');
  await lost.user.upload('files', 'large', randomBytes(LARGE_MIB * MIB));
  const rows = `WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ${LARGE_MIB / 4})`;
  for (let part = 0; part < 4; part++) {
    await run(lost.user, path, `INSERT INTO t ${rows} SELECT randomblob(${MIB}) FROM n`);
  }
  const largePoint = await peakOfPoint();
  const largeRestore = await peakOfRestore('large');
  const figures = [point, largePoint, restore, largeRestore].map(Math.round).join(', ');
  t.diagnostic(`MiB: ${figures}`);
  assert.ok(largePoint - point < MOST_MIB, `points take ${point} and ${largePoint} MiB`);
  assert.ok(largeRestore - restore < MOST_MIB, `restores take ${restore} and ${largeRestore} MiB`);
});
