/** Simultaneous first recovery points of several callers: one is created, the others are refused. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { POINTS, POST } from './recovery-kit.ts';

const root = mkdtempSync(join(tmpdir(), 'cloudlet-recovery-'));
const clouds: CloudProcess[] = [];
const OFF = { method: 'PATCH', json: { every: 'off' } };

/** Clouds whose first points go to the target with that name: the copies have the keys of the first. */
async function start(dataDir: string): Promise<CloudProcess> {
  const cloud = await CloudProcess.start({
    dataDir: join(root, dataDir),
    env: { CLOUDLET_RECOVERY_TARGET: join(root, 'unused') },
  });
  clouds.push(cloud);
  return cloud;
}

before(async () => {
  for (const dataDir of ['one', 'stranger']) {
    const cloud = await start(dataDir);
    const admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
    await admin.expect(200, '/api/disaster-recovery/schedule', OFF);
    await cloud.end();
  }
  cpSync(join(root, 'one'), join(root, 'copy'), { recursive: true });
});
after(async () => {
  for (const cloud of clouds) await cloud.end();
  rmSync(root, { recursive: true, force: true });
});

async function open(dataDir: string, target: string): Promise<CheckedClient> {
  const env = { CLOUDLET_RECOVERY_TARGET: join(root, target) };
  const cloud = await CloudProcess.start({ dataDir: join(root, dataDir), env });
  clouds.push(cloud);
  return CheckedClient.open(cloud.api, ADMIN_KEY);
}

async function end(): Promise<void> {
  for (const cloud of clouds.splice(0)) await cloud.end();
}

type Answer = Awaited<ReturnType<CheckedClient['call']>>;
const told = ({ status, body }: Answer) => `${status} ${body.code ?? body.state}`;

/** A refused caller can repeat the call. */
function assertRefused(answers: readonly Answer[], code: string): void {
  const all = answers.map(told).join(', ');
  assert.ok(
    answers.some(({ status }) => status === 201),
    all,
  );
  for (const answer of answers) if (answer.status !== 201) assert.equal(told(answer), `409 ${code}`, all);
}

const countMade = (answers: readonly Answer[]) => answers.filter(({ status }) => status === 201).length;

test('of one cloud, while its key is asked for', async () => {
  const admin = await open('one', 'of-one');
  const keys = [0, 1].map(() => admin.call('/api/admin/recovery-key', POST));
  const made = await Promise.all([0, 1, 2, 3].map(() => admin.call(`${POINTS}?wait=60`, POST)));
  assertRefused(made, 'point_in_progress');
  assert.equal(countMade(made), 1);
  for (const key of await Promise.all(keys)) assert.equal(key.status, 200);
  assert.equal((await admin.expect(200, POINTS)).length, 1);
  await end();
});

for (const other of ['copy', 'stranger']) {
  test(`of two clouds on one target: one and its ${other}`, async () => {
    for (let round = 0; round < 3; round++) {
      const target = `of-${other}-${round}`;
      const both = [await open('one', target), await open(other, target)];
      try {
        const made = await Promise.all(both.map((admin) => admin.call(`${POINTS}?wait=60`, POST)));
        assertRefused(made, 'target_in_use');
        // A copy has the same keys, so it may be second.
        if (other === 'stranger') assert.equal(countMade(made), 1);
      } finally {
        await end();
      }
    }
  });
}
