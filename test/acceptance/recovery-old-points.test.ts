/**
 * Recovery points of older versions can be restored into the newest one. `point-of-schema-14/` was created by
 * the last Cloudlet whose metadata had 14 migrations: an account with a sealed and a plain bucket, and a
 * database.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { runCloudlet } from '../harness/command.ts';
import { eventually } from '../harness/waiting.ts';
import { DATABASES, rowsOf } from './databases-kit.ts';
import { POINTS, POST } from './recovery-kit.ts';

const OLD_POINT = fileURLToPath(new URL('point-of-schema-14', import.meta.url));
const KEY_OF_ADA = 'clk_eV3caYtrGI4eRMPRJWBFVWwSQurCOwij1ErFlR';
const PASSWORD = 'correct horse battery';
const NUMBERS = Array.from({ length: 50_000 }, (_, at) => `${at + 1}\n`).join('');
const root = mkdtempSync(join(tmpdir(), 'cloudlet-recovery-'));
after(() => rmSync(root, { recursive: true, force: true }));

test('a point of schema 14 restores: keys, passwords, versions and rows are there', async (t) => {
  // A cloud that continues with these points writes to their target.
  const target = join(root, 'points');
  cpSync(OLD_POINT, target, { recursive: true });
  const dataDir = join(root, 'data');
  const words = ['--from', target, '--to', dataDir, '--key-file', join(target, 'recovery-key')];
  const restored = await runCloudlet(['recovery', 'restore', ...words], { env: {}, timeoutMs: 100_000 });
  assert.equal(restored.code, 0, restored.stderr);
  const cloud = await CloudProcess.start({ dataDir, env: { CLOUDLET_RECOVERY_TARGET: target } });
  t.after(() => cloud.end());
  const ada = await CheckedClient.open(cloud.api, KEY_OF_ADA);
  const login = await ada.as(undefined).call('/api/login', { json: { username: 'ada', password: PASSWORD } });
  assert.equal(login.status, 200);
  const listed = await ada.expect(200, '/api/buckets/notes/files?include_versions=true');
  const texts: string[] = [];
  for (const { id, version_id: version } of listed) {
    texts.push(String(await ada.download(id, `?version_id=${version}`)));
  }
  assert.deepEqual(texts.sort(), ['the first note\n', 'the second note\n']);
  const [numbers] = await ada.expect(200, '/api/buckets/plain/files');
  assert.equal(String(await ada.download(numbers.id)), NUMBERS);
  const [{ database_id: id }] = await ada.expect(200, DATABASES);
  const path = `${DATABASES}/${id}`;
  await eventually('it is loaded', async () => (await ada.expect(200, path)).state === 'ready');
  assert.deepEqual(await rowsOf(ada, path, 'SELECT x FROM t'), [[7]]);
  // The newest version reads the old point like its own, and stores the next one beside it.
  const admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
  assert.equal((await admin.expect(200, '/api/disaster-recovery/check', POST)).points, 1);
  const [old] = await admin.expect(200, POINTS);
  assert.equal((await admin.expect(200, `${POINTS}/${old.point_id}/verify?wait=60`, POST)).state, 'verified');
  assert.equal((await admin.expect(201, `${POINTS}?wait=60`, POST)).state, 'complete');
});
