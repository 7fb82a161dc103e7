/** `cloudlet databases upgrade postgresql`, as run by an operator. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CloudProcess } from '../harness/cloud-process.ts';
import { runCloudlet } from '../harness/command.ts';

test('the data of PostgreSQL are upgraded while Cloudlet is stopped, and only then', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-upgrade-'));
  t.after(() => rmSync(dataDir, { recursive: true }));
  const env = { CLOUDLET_DATA_DIR: dataDir, CLOUDLET_PORT: '0', CLOUDLET_DATA_PORT: '0' };
  const upgrade = (...words: string[]) => runCloudlet(['databases', 'upgrade', ...words], { env });
  const without = await upgrade('postgresql');
  assert.deepEqual([without.code, existsSync(join(dataDir, 'databases'))], [1, false]);
  const cloud = await CloudProcess.start({ dataDir });
  t.after(() => cloud.stop());
  const early = await upgrade('postgresql');
  assert.equal(early.code, 1, early.stdout);
  assert.match(early.stderr, /^cloudlet: Another Cloudlet uses the data directory [^\n]+\n$/);
  await cloud.end();
  const unknown = await upgrade('mysql');
  assert.deepEqual([unknown.code, unknown.stderr.includes('upgrade postgresql')], [2, true]);
  const nothing = await upgrade('postgresql');
  assert.deepEqual([nothing.code, nothing.stderr], [0, '']);
  assert.match(nothing.stdout, /^Nothing to upgrade: there is no PostgreSQL data/);
});
