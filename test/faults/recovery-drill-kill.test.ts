/** A restore drill that is killed at any stage, or with its cloud, leaves no process, file or group. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { LosableCloud, POINTS, POST } from '../acceptance/recovery-kit.ts';
import { eventually } from '../harness/waiting.ts';

const STAGES = ['reading', 'restoring', 'starting', 'opening databases'];

let lost: LosableCloud;
let path: string;
before(async () => {
  lost = await LosableCloud.start();
  await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
  for (let i = 0; i < 40; i++) await lost.user.upload('files', `f-${i}`, randomBytes(1_000_000));
  for (const engine of ['sqlite', 'mongodb'])
    await lost.user.expect(201, '/api/databases', { json: { name: `of-${engine}`, engine } });
  path = `${POINTS}/${(await lost.point()).point_id}`;
});
after(() => lost.end());

const drillFolder = () => join(lost.dataDir, 'drill');

/** Process ids of everything that works in a scratch directory, or is a drill's process. */
function drillProcesses(): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      return `${words} ${readlinkSync(`/proc/${pid}/cwd`)}`.includes(drillFolder()) || isDrill(pid, words);
    } catch {
      return false;
    }
  });
}

/** Of this cloud, or of one that was killed. */
function isDrill(pid: string, words: string): boolean {
  const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
  return words.includes('drill-main.ts') && environment.includes(lost.dataDir);
}

async function reach(stage: string): Promise<void> {
  await lost.admin.expect(200, `${path}/drill`, POST);
  await eventually(`the drill is ${stage}`, async () => {
    const { drilling } = await lost.admin.expect(200, path);
    // One that was faster than we looked is killed where it is.
    return drilling === null || STAGES.indexOf(drilling) >= STAGES.indexOf(stage) || drilling === 'comparing';
  });
}

for (const stage of STAGES) {
  test(`its process is killed while ${stage}`, async () => {
    await reach(stage);
    for (const pid of drillProcesses())
      if (isDrill(pid, 'drill-main.ts')) process.kill(Number(pid), 'SIGKILL');
    await eventually('it ended', async () => (await lost.admin.expect(200, path)).drilling === null);
    assert.deepEqual([drillProcesses(), readdirSync(drillFolder())], [[], []]);
  });

  test(`its cloud is killed while ${stage}`, async () => {
    await reach(stage);
    await lost.cloud.crash();
    await eventually('its processes are gone', () => drillProcesses().length === 0);
    await lost.startAgain();
    await eventually('its files are gone', () => readdirSync(drillFolder()).length === 0);
  });
}

test('the next drill passes', async () => {
  const { drill } = await lost.admin.expect(200, `${path}/drill?wait=300`, POST);
  assert.equal(drill.reason, null, JSON.stringify(drill));
});
