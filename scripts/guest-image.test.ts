import assert from 'node:assert/strict';
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { NO_GUEST_IMAGE } from './installed.ts';

// By a name that tsc cannot follow: it is JavaScript, because an old Node runs it.
const { buildGuestImage } = await import(new URL('./guest-image.js', import.meta.url).href);
const ROOT = dirname(import.meta.dirname);
const DIRECTORY = mkdtempSync(join(tmpdir(), 'guest-image-'));
const isBuilt = existsSync(join(ROOT, 'build/guest/stamp'));

after(() => rmSync(DIRECTORY, { recursive: true, force: true }));

// What the image does when it boots: test/acceptance/vms-guest.test.ts.
const skip = isBuilt ? false : NO_GUEST_IMAGE;
test('the image is not built again until an input changes', { skip }, () => {
  const root = join(DIRECTORY, 'repository');
  mkdirSync(root);
  for (const name of ['guest', 'build/guest']) {
    cpSync(join(ROOT, name), join(root, name), { recursive: true });
  }
  mkdirSync(join(root, 'scripts'));
  for (const name of ['guest-image.js', 'guest-packages.js', 'cpio-archive.js']) {
    copyFileSync(join(ROOT, 'scripts', name), join(root, 'scripts', name));
  }
  const outsidePath = join(DIRECTORY, 'nowhere');
  assert.equal(buildGuestImage({ root, outsidePath }), false);
  writeFileSync(join(root, 'guest/etc/motd'), 'changed\n');
  assert.throws(() => buildGuestImage({ root, outsidePath }), { message: /was not found/ });
});
