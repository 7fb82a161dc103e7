import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openDataDirectory } from './data-directory.ts';
import { StartupError } from './startup-error.ts';

const scratch = mkdtempSync(join(tmpdir(), 'cloudlet-data-'));
after(() => rmSync(scratch, { recursive: true }));
const modeOf = (path: string) => statSync(path).mode & 0o777;

test('a missing directory is made, with its parents, for its owner only', () => {
  const path = join(scratch, 'a', 'b');
  assert.equal(openDataDirectory(path), path);
  assert.equal(modeOf(path), 0o700);
});

test('one that others could read is closed to them, and what is in it stays', () => {
  const path = join(scratch, 'old');
  openDataDirectory(path);
  writeFileSync(join(path, 'metadata.db'), 'kept');
  chmodSync(path, 0o755);
  openDataDirectory(path);
  assert.equal(modeOf(path), 0o700);
  assert.equal(readFileSync(join(path, 'metadata.db'), 'utf8'), 'kept');
});

test('a place that cannot be a directory is refused in one clear line', () => {
  const file = join(scratch, 'file');
  writeFileSync(file, '');
  for (const path of [file, join(file, 'below')]) {
    assert.throws(
      () => openDataDirectory(path),
      (error) => {
        assert.ok(error instanceof StartupError);
        assert.ok(error.message.includes(path) && error.message.includes('CLOUDLET_DATA_DIR'));
        assert.doesNotMatch(error.message, /\n/);
        return true;
      },
    );
  }
});
