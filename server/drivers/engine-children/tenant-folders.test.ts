import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { TenantFolders } from './tenant-folders.ts';

test('are used once there is a database, not for the mark of the cloud alone', async (t) => {
  const parent = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  t.after(() => rmSync(parent, { recursive: true }));
  const root = join(parent, 'sqlite');
  const folders = new TenantFolders(root);
  assert.equal(folders.isUsed(), false);
  mkdirSync(root);
  writeFileSync(join(root, '.cloud'), '');
  assert.equal(folders.isUsed(), false);
  await folders.make('d_0123456789abcdef', null);
  assert.equal(folders.isUsed(), true);
});
