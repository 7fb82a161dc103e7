import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { noGuestUsers } from '../testing/own-ground.ts';
import { holdsCloud, openDataDirectory, openParentOf, StartupError } from './data-directory.ts';

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

test('a path that cannot be a directory is refused in one clear line', () => {
  const file = join(scratch, 'file');
  writeFileSync(file, '');
  for (const path of [file, join(file, 'below')]) refused(path, /is a file, not a directory/);
});

test(
  'where nothing can be made this is said, and not tried for ever',
  {
    skip: process.platform !== 'linux',
  },
  () => refused('/proc/no/such/place', /is not writable \(ENOENT\)/),
);

test('one that another user owns is refused to root, with the fix', {
  skip: noGuestUsers,
}, () => {
  const path = join(scratch, 'of-another');
  mkdirSync(path);
  chownSync(path, 4711, 4711);
  refused(path, /belongs to another user \(uid 4711\): chown root \S+, or run Cloudlet as that user/);
  assert.equal(statSync(path).uid, 4711);
  chownSync(path, 0, 0);
  assert.equal(openDataDirectory(path), path);
});

test('a directory above that lets everyone rename what is in it is found; a sticky one is none', () => {
  const path = join(scratch, 'open', 'inner', 'data');
  openDataDirectory(path);
  const above = join(scratch, 'open');
  assert.notEqual(openParentOf(path), above);
  chmodSync(above, 0o777);
  assert.equal(openParentOf(path), above);
  chmodSync(above, 0o1777);
  assert.notEqual(openParentOf(path), above);
});

test('only where a cloud was started there is one', () => {
  const path = join(scratch, 'marked');
  assert.equal(holdsCloud(path), false);
  openDataDirectory(path);
  assert.equal(holdsCloud(path), false);
  writeFileSync(join(path, 'metadata.db'), '');
  assert.equal(holdsCloud(path), true);
  assert.equal(holdsCloud(join(path, 'metadata.db')), false);
});

function refused(path: string, reason: RegExp): void {
  assert.throws(
    () => openDataDirectory(path),
    (error) => {
      assert.ok(error instanceof StartupError);
      assert.match(error.message, reason);
      assert.match(error.message, /CLOUDLET_DATA_DIR/);
      assert.doesNotMatch(error.message, /\n/);
      return true;
    },
  );
}
