/** The keys that seal a point: those of its own moment, which are tested before it is complete. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { LosableCloud, POINTS, POST } from './recovery-kit.ts';

let lost: LosableCloud;
let object: string;
const bytes = randomBytes(100_000);
before(async () => {
  lost = await LosableCloud.start();
  await lost.user.expect(201, '/api/buckets', { json: { name: 'sealed', encryption: true } });
  object = (await lost.user.upload('sealed', 'file', bytes)).body.object_id;
});
after(() => lost.end());

test('a point whose master.key is another one fails, saying so', async () => {
  const file = join(lost.dataDir, 'master.key');
  const right = readFileSync(file);
  const other = '0123456789abcdef';
  const keys = { [other]: randomBytes(32).toString('base64') };
  writeFileSync(file, JSON.stringify({ current: other, keys }));
  const failed = await lost.point();
  assert.equal(failed.state, 'failed');
  assert.match(failed.state_reason, /^master\.key has no key [0-9a-f]{16}, which encrypts \S+$/);
  assert.equal(failed.manifest_sha256, null);
  writeFileSync(file, right);
  const { state, gaps } = await lost.point();
  assert.deepEqual([state, gaps], ['complete', []]);
});

test('keys are rotated before a point or after it, and a point of two rotations ago restores', async () => {
  const { point_id: id } = await lost.point();
  const rotate = () => lost.admin.call('/api/admin/master-key/rotate', POST);
  // A rotation takes seconds: whichever of the two is first, the other is refused meanwhile.
  const [rotation, point] = await Promise.all([rotate(), lost.admin.call(`${POINTS}?wait=60`, POST)]);
  const refused = rotation.status === 200 ? point : rotation;
  assert.equal(refused.body.code, 'point_in_progress');
  for (let count = rotation.status === 200 ? 1 : 0; count < 2; count++) {
    assert.equal((await rotate()).status, 200);
  }
  assert.equal((await lost.point()).state, 'complete');
  await lost.keepKey();
  await lost.lose(id);
  assert.deepEqual(await lost.user.download(object), bytes);
});

test('who restored a cloud has the recovery key: it is taken, and kept there no more', async () => {
  const { recovery } = await eventually('the target was checked', async () => {
    const { components } = await lost.admin.expect(200, '/api/system/status');
    return components.recovery.key_taken !== null && components;
  });
  assert.equal(recovery.key_taken, true);
  const codes = recovery.warnings.map(({ code }: { code: string }) => code);
  assert.ok(!codes.includes('recovery_key_not_taken'));
  assert.equal((await lost.admin.call('/api/admin/recovery-key', POST)).body.code, 'recovery_key_taken');
});

test('the first points and the recovery key, asked for at once, make one repository', async (t) => {
  for (let round = 0; round < 3; round++) {
    const fresh = await LosableCloud.start();
    t.after(() => fresh.end());
    const key = () => fresh.admin.call('/api/admin/recovery-key', POST);
    const point = () => fresh.admin.call(POINTS, POST);
    const answers = await Promise.all([key(), point(), key(), point(), key()]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 201, 409]);
    const keys = answers.flatMap(({ body }) => body.recovery_key ?? []);
    assert.equal(new Set(keys).size, 1);
  }
});
