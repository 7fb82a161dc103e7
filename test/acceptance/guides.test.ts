/** README and the tour, run as printed; guides-pages and guides-machines run the other guides. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { GUIDES, GUIDES_WITH_MACHINES, runGuide } from './guides-kit.ts';
import { cannotRunGuests } from './vms-kit.ts';

const skip = notInstalled('curl', 'jq', 'xxd');
const skipMachines = cannotRunGuests() || notInstalled('curl', 'jq', 'ssh', 'ssh-keygen');
const ROOT = new URL('../../', import.meta.url);

test('docs/tour.md runs as it is printed, in one shell, and leaves nothing', { skip }, () =>
  runGuide('docs/tour.md', ['object_not_found']),
);

test('README.md runs as it is printed, in one shell, and leaves nothing', { skip: skipMachines }, () =>
  runGuide('README.md'),
);

test('every page with commands is run by a test', () => {
  const tested = new Set(['docs/tour.md', ...GUIDES, ...GUIDES_WITH_MACHINES]);
  const pages = globSync('docs/*.md', { cwd: ROOT });
  const untested = pages.filter(
    (page) => /^```sh$/m.test(readFileSync(new URL(page, ROOT), 'utf8')) && !tested.has(page),
  );
  assert.deepEqual(untested, []);
});
