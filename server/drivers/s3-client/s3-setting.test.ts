import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { addressIn } from './s3-setting.ts';

const names = { name: 'CLOUDLET_X_URL', fileName: 'CLOUDLET_X_FILE' };
const bare = 's3://s3.example.com/bucket';

test('credentials are those of the file, or of the URL without one', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-s3-setting-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'key');
  writeFileSync(file, 'AKIA:secret\n');
  const ofFile = addressIn({ ...names, url: bare, file });
  assert.deepEqual([ofFile.accessKeyId, ofFile.secretAccessKey], ['AKIA', 'secret']);
  const ofUrl = addressIn({ ...names, url: 's3://KEY:word@s3.example.com/bucket', file: '' });
  assert.deepEqual([ofUrl.accessKeyId, ofUrl.secretAccessKey], ['KEY', 'word']);
});

test('an error names the setting that is wrong', () => {
  assert.throws(() => addressIn({ ...names, url: 's3://KEY:topsecret@', file: '' }), {
    name: 'StartupError',
    message: /^CLOUDLET_X_URL must (?!.*topsecret)/,
  });
  assert.throws(() => addressIn({ ...names, url: bare, file: '/nowhere/key' }), {
    name: 'StartupError',
    message: 'CLOUDLET_X_FILE /nowhere/key cannot be read (ENOENT)',
  });
});
